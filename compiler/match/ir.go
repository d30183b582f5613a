// Package match is the match stage of a Match+Lambda program (λ-NIC, section 4.1) in any language: what is parsed from a packet, which lambda
// runs on it, and where the packet goes. Reduce makes the program smaller, and Emit translates it to C for BPF.
package match

import "math/big"

// WordBits is the width of the words in which wide fields are held, most significant first.
const WordBits = 32

// Program is a match stage. Tables hold their rules.
type Program struct {
	Headers      []*Header // packet headers and metadata, in the order of their declaration
	States       []*State  // the first one starts
	Tables       []*Table
	Primitives   []string // C functions, called with the headers
	Ingress      []Stmt
	Egress       []Stmt
	Calculations []*Calculation
}

// Header is an instance of a header, or of metadata, which no packet carries.
type Header struct {
	Name     string
	Type     string
	Metadata bool
	Fields   []*Field
}

// Bits returns the header's width.
func (h *Header) Bits() int {
	n := 0
	for _, f := range h.Fields {
		n += f.Width
	}
	return n
}

// Bytes returns the header's size on the wire.
func (h *Header) Bytes() int { return h.Bits() / 8 }

// Field returns the field of that name, or nil.
func (h *Header) Field(name string) *Field {
	for _, f := range h.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Field is one field of one header instance.
type Field struct {
	Header *Header
	Name   string
	Width  int      // bits
	Offset int      // bits from the header's beginning
	Init   *big.Int // of metadata; nil is zero
}

// Words returns the number of words that hold the field.
func (f *Field) Words() int { return (f.Width + WordBits - 1) / WordBits }

// State is one state of the parser.
type State struct {
	Name  string
	Steps []Stmt // Extract and Assign
	Keys  []Expr
	Cases []Case
	Next  *State // if no case matches; nil ends parsing
}

// Case is a transition for one value of the state's keys.
type Case struct {
	Values []Masked // one for each key
	Next   *State   // nil ends parsing
}

// Masked is a value with a mask of the bits that count; a nil Mask means all.
type Masked struct {
	Value, Mask *big.Int
}

// Kind says how a table's key matches.
type Kind int

// The kinds of match.
const (
	Exact Kind = iota
	Ternary
	LPM
	Valid
)

// Key is one key of a table.
type Key struct {
	Kind   Kind
	Expr   Expr    // but for Valid
	Header *Header // Valid's
}

// Table chooses an action by its keys.
type Table struct {
	Name    string
	Keys    []Key
	Actions []*Action // that its rules may name
	Rules   []Rule    // the first that matches is taken
	Default *Call     // nil does nothing
	Params  []Param   // of a table that stands for several
}

// Param is a value that the table's callers pass.
type Param struct {
	Name  string
	Width int
}

// Rule is a row of a table.
type Rule struct {
	Name   string
	Values []Masked // one for each key; Valid's is 0 or 1
	Call   Call
}

// Call is an action with its data.
type Call struct {
	Action *Action
	Args   []Expr // Const, or Arg of the table's parameters
}

// Action is a sequence of statements with parameters.
type Action struct {
	Name   string
	Params []string
	Body   []Stmt
}

// Stmt is one statement of parser, control flow or action.
type Stmt interface{ stmt() }

type (
	// Extract takes a header from the packet. Parser only.
	Extract struct{ Header *Header }
	// Assign sets a field, to the value's low bits.
	Assign struct {
		To   *Field
		From Expr
	}
	// SetValid adds a header with zero fields to the packet, or removes it.
	SetValid struct {
		Header *Header
		Valid  bool
	}
	// Primitive calls the C function of that name.
	Primitive struct{ Name string }
	// Drop discards the packet when the control flow ends.
	Drop struct{}
	// Clone sends a copy of the packet, as it leaves, to the beginning of the match stage, with the values of the fields in Keep.
	Clone struct{ Keep []*Field }
	// Apply looks a table up. The blocks run after the rule's action.
	Apply struct {
		Table     *Table
		Args      []Expr // for the table's parameters
		Hit, Miss []Stmt
		After     map[*Action][]Stmt // by the action that ran
		Otherwise []Stmt             // after an action that is not in After
	}
	// If branches.
	If struct {
		Cond       Expr
		Then, Else []Stmt
	}
)

func (Extract) stmt()   {}
func (Assign) stmt()    {}
func (SetValid) stmt()  {}
func (Primitive) stmt() {}
func (Drop) stmt()      {}
func (Clone) stmt()     {}
func (Apply) stmt()     {}
func (If) stmt()        {}

// Expr is a value. Comparisons and logic give 0 or 1; arithmetic is modulo 2^64.
type Expr interface{ expr() }

type (
	// Const is a number.
	Const struct{ Value *big.Int }
	// Ref is a field's value.
	Ref struct{ Field *Field }
	// Arg is a parameter of the action or, in a table's rules, of the table.
	Arg struct {
		Index int
		Name  string
	}
	// IsValid tells whether the packet has the header.
	IsValid struct{ Header *Header }
	// Unary is !, ~ or -.
	Unary struct {
		Op string
		X  Expr
	}
	// Binary is the C operator with the same spelling.
	Binary struct {
		Op   string
		X, Y Expr
	}
)

func (Const) expr()   {}
func (Ref) expr()     {}
func (Arg) expr()     {}
func (IsValid) expr() {}
func (Unary) expr()   {}
func (Binary) expr()  {}

// Num is a small constant.
func Num(n uint64) Const { return Const{new(big.Int).SetUint64(n)} }

// Calculation is a checksum over a list of fields (RFC 1071), held in a field.
type Calculation struct {
	Field   *Field
	Inputs  []Input
	Payload bool // what follows the checksum's own header belongs to the list
	Verify  bool // drop packets in which it is wrong
	Update  bool // set it when the packet leaves
	When    Expr // nil: always
}

// Input is an entry of a calculation's list: a field, or a constant of that width.
type Input struct {
	Field *Field
	Value *big.Int
	Width int
}

// Ports are the values of the standard metadata's ports.
const (
	PortWire = 0      // p0: the wire on which packets arrive
	PortHost = 0x300  // v0.0: the host's first of HostPorts
	PortNone = 0xffff // no port: the packet is dropped
)

// HostPortsEach is the number of host ports at each of the HostSlots PCIe slots: it is the distance from v0.0 to v1.0.
const (
	HostSlots     = 4
	HostPortsEach = 64
	HostPorts     = HostSlots * HostPortsEach
)

// KeptWords is how many words of metadata all clones of a program can keep together (LN_KEPT_WORDS in bpf/layout.h).
const KeptWords = 60

// IsPort says whether packets for that port go anywhere.
func IsPort(n *big.Int) bool {
	if !n.IsUint64() {
		return false
	}
	p := n.Uint64()
	return p == PortWire || p >= PortHost && p < PortHost+HostPorts
}

// StandardMetadata is the name of the metadata that every program has.
const StandardMetadata = "standard_metadata"

// NewStandardMetadata makes an instance for a program.
func NewStandardMetadata() *Header {
	h := &Header{Name: StandardMetadata, Type: "standard_metadata_t", Metadata: true}
	for _, f := range []Field{
		{Name: "ingress_port", Width: 16},
		{Name: "packet_length", Width: 32},
		{Name: "egress_spec", Width: 16, Init: big.NewInt(PortNone)},
		{Name: "egress_port", Width: 16},
		{Name: "egress_instance", Width: 16},
		{Name: "instance_type", Width: 32}, // 0 a packet, 1 a clone
	} {
		f.Header, f.Offset = h, h.Bits()
		h.Fields = append(h.Fields, &f)
	}
	return h
}

// Header returns the header of that name, or nil.
func (p *Program) Header(name string) *Header {
	for _, h := range p.Headers {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// standard returns a field of the standard metadata, or nil if the reduction removed it.
func (p *Program) standard(name string) *Field {
	if h := p.Header(StandardMetadata); h != nil {
		return h.Field(name)
	}
	return nil
}
