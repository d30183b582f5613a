package p4

import "math/big"

// The syntax tree holds names as written; the checker resolves them.

type name struct {
	position
	text string
}

type (
	headerType struct {
		name   name
		fields []fieldDecl
	}
	fieldDecl struct {
		name  name
		width int
	}
	instance struct {
		name, typ name
		metadata  bool
		init      []initializer
	}
	initializer struct {
		field name
		value number
	}
	fieldList struct {
		name    name
		entries []listEntry
	}
	// listEntry is a field, a header's or list's name, a number, or "payload".
	listEntry struct {
		ref    *reference
		number *number
	}
	calculation struct {
		name      name
		inputs    []name
		algorithm name
		width     number
	}
	calculatedField struct {
		field   reference
		clauses []calculationClause
	}
	calculationClause struct {
		verify bool
		calc   name
		when   expression
	}
	parserState struct {
		name   name
		steps  []call // extract and set_metadata
		keys   []expression
		cases  []selectCase
		next   *name // of an unconditional return
		closed bool  // it has a return
	}
	selectCase struct {
		position
		values []maskedNumber // alternatives; none is default
		next   name
	}
	maskedNumber struct {
		value number
		mask  *number
	}
	action struct {
		name   name
		params []name
		body   []call
	}
	call struct {
		name name
		args []expression
	}
	table struct {
		name    name
		reads   []readKey
		actions []name
		dflt    *call
	}
	readKey struct {
		ref  reference
		mask *number
		kind name
	}
	control struct {
		name name
		body []statement
	}
)

// statement is one statement of a control.
type statement interface{}

type (
	applyStatement struct {
		table  name
		blocks []applyBlock
	}
	applyBlock struct {
		label name // hit, miss, default, or an action
		body  []statement
	}
	ifStatement struct {
		cond            expression
		then, otherwise []statement
	}
	callStatement struct{ name name }
)

// expression is a value in the program.
type expression interface{ at() position }

type (
	number struct {
		position
		value *big.Int
		width int
	}
	// reference is NAME or NAME.FIELD.
	reference struct {
		name
		field *name
	}
	validity struct {
		position
		header name
	}
	unary struct {
		position
		op string
		x  expression
	}
	binary struct {
		position
		op   string
		x, y expression
	}
)

func (p position) at() position { return p }

func (r reference) String() string {
	if r.field == nil {
		return r.text
	}
	return r.text + "." + r.field.text
}

// file is a whole program.
type file struct {
	types        []headerType
	instances    []instance
	lists        []fieldList
	calculations []calculation
	calculated   []calculatedField
	states       []parserState
	primitives   []name
	actions      []action
	tables       []table
	controls     []control
}
