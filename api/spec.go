package api

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MessageMode says how a lambda sees requests of several packets (docs/protocol.md).
type MessageMode string

// The message modes.
const (
	ModePacket   MessageMode = "packet"   // one packet is one request
	ModeStream   MessageMode = "stream"   // the lambda runs on each packet as it arrives
	ModeAssemble MessageMode = "assemble" // the lambda runs once on the whole message
)

// Spec describes one lambda: lambda.yml. The zero value of an optional field means its default, which Default fills in.
type Spec struct {
	Name     string        `yaml:"name" json:"name"`
	Source   string        `yaml:"source,omitempty" json:"source,omitempty"` // relative to the spec; NAME.c
	Entry    string        `yaml:"entry,omitempty" json:"entry,omitempty"`   // the C function; NAME
	Targets  []Target      `yaml:"targets,omitempty" json:"targets,omitempty"`
	Message  MessageSpec   `yaml:"message,omitempty" json:"message,omitzero"`
	Limits   LimitsSpec    `yaml:"limits,omitempty" json:"limits,omitzero"`
	Services []ServiceSpec `yaml:"services,omitempty" json:"services,omitempty"`
	Breaker  BreakerSpec   `yaml:"breaker,omitempty" json:"breaker,omitzero"`
	// Offload puts the lambda onto the processor of the NIC's card too, where `up --mode offload` found one.
	Offload bool `yaml:"offload,omitempty" json:"offload,omitempty"`
	// Once has every request executed at most once while it is remembered, whether its client asks for it or not
	// (docs/protocol.md).
	Once bool `yaml:"once,omitempty" json:"once,omitempty"`
	// P4 is the match stage's program, whose primitive actions are functions of Source, and Rules the rules of its tables
	// (.p4cfg). Both are relative to the spec. LenientRules has rules for tables that the program lacks left out with a warning.
	P4           string `yaml:"p4,omitempty" json:"p4,omitempty"`
	Rules        string `yaml:"rules,omitempty" json:"rules,omitempty"`
	LenientRules bool   `yaml:"lenient_rules,omitempty" json:"lenient_rules,omitempty"`
	// Codec tells command line and gateway how to turn files into messages: "" (bytes as they are) or "image" (PNG to RGBA
	// and 8-bit grey to PNG).
	Codec string `yaml:"codec,omitempty" json:"codec,omitempty"`
}

// MessageSpec bounds the requests of several packets.
type MessageSpec struct {
	Mode     MessageMode `yaml:"mode,omitempty" json:"mode,omitempty"`
	Max      Bytes       `yaml:"max,omitempty" json:"max,omitempty"`             // largest message
	InFlight int         `yaml:"in_flight,omitempty" json:"in_flight,omitempty"` // messages at once, rounded up to a power of two
	Timeout  Duration    `yaml:"timeout,omitempty" json:"timeout,omitempty"`     // a message without new packets is forgotten
	Regions  int         `yaml:"regions,omitempty" json:"regions,omitempty"`     // messages besides, which peers write by RDMA (target nic)
}

// Records returns how many records of messages a lambda has in all, a power of two, and the first of those that are regions.
// Those before it are of λ-RPC messages.
func (m MessageSpec) Records() (all, firstRegion int) {
	firstRegion = roundUp(m.InFlight)
	return roundUp(firstRegion + m.Regions), firstRegion
}

func roundUp(n int) int {
	if n <= 1 {
		return n
	}
	return 1 << bits.Len(uint(n-1))
}

// LimitsSpec bounds a lambda's resources.
type LimitsSpec struct {
	Memory Bytes    `yaml:"memory,omitempty" json:"memory,omitempty"` // all its global variables together
	Time   Duration `yaml:"time,omitempty" json:"time,omitempty"`     // of one run
}

// ServiceSpec names an external service that the lambda may call, over UDP.
type ServiceSpec struct {
	Name     string          `yaml:"name" json:"name"`
	Protocol ServiceProtocol `yaml:"protocol" json:"protocol"`
	// Address is IP:PORT; the host name "host" stands for the host's own address on the NIC's link. A service of several
	// servers has Addresses instead. Each call's key chooses one of them.
	Address   string   `yaml:"address,omitempty" json:"address,omitempty"`
	Addresses []string `yaml:"addresses,omitempty" json:"addresses,omitempty"`
	// Weights say which share of the keys each of Addresses gets; without them, all get the same.
	Weights []int `yaml:"weights,omitempty" json:"weights,omitempty"`
	// Timeout is that of one try, after which the request is sent again, at most Retries times.
	Timeout Duration `yaml:"timeout,omitempty" json:"timeout,omitempty"`
	Retries int      `yaml:"retries,omitempty" json:"retries,omitempty"`
	// ID says where datagrams of ProtocolRaw have a request ID.
	ID *ServiceID `yaml:"id,omitempty" json:"id,omitempty"`
}

// ServiceProtocol says what tells answers of a service apart.
type ServiceProtocol string

// What services speak.
const (
	ProtocolMemcached ServiceProtocol = "memcached" // the frame header of memcached's text and binary protocols over UDP
	ProtocolRaw       ServiceProtocol = "raw"       // the source port, and ServiceID where there is one
)

// ServiceID is a request ID that a service's answers repeat at the same place: At bytes from the beginning of the datagram.
type ServiceID struct {
	At    int `yaml:"at,omitempty" json:"at,omitempty"`
	Bytes int `yaml:"bytes" json:"bytes"` // 2, 4 or 8
}

// Bytes is a size, written as a number with an optional unit: 64KiB, 16MiB, 1GiB.
type Bytes uint64

// Duration is a time.Duration, written as Go writes them: 100us, 5s.
type Duration time.Duration

// Limits on specs; a NIC may set lower ones.
const (
	MaxMessage  Bytes = RPCMaxMessage
	MaxMemory   Bytes = 256 << 20
	MaxServices       = 8
	MaxServers        = 32 // of all services together
	MaxWeight         = 1000
	MaxRetries        = 10
	MaxRegions        = 64
)

var (
	nameRE       = regexp.MustCompile(`^[a-z]([a-z0-9_-]{0,61}[a-z0-9])?$`)
	identifierRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// Default returns s with its defaults filled in.
func (s Spec) Default() Spec {
	if s.Source == "" {
		s.Source = s.Name + ".c"
	}
	if s.Entry == "" {
		s.Entry = strings.ReplaceAll(s.Name, "-", "_")
	}
	if len(s.Targets) == 0 {
		s.Targets = []Target{TargetNIC, TargetProcess}
		if s.P4 != "" {
			s.Targets = []Target{TargetNIC} // it works on whole packets
		}
	}
	s.Message = s.Message.withDefaults()
	if s.Limits.Memory == 0 {
		s.Limits.Memory = s.Message.defaultMemory()
	}
	if s.Limits.Time == 0 {
		s.Limits.Time = Duration(100 * time.Microsecond)
		if s.P4 != "" {
			s.Limits.Time = Duration(10 * time.Millisecond) // the dialect knows no limit: its programs work on whole images at once
		}
	}
	s.Breaker = s.Breaker.withDefaults()
	s.Services = slices.Clone(s.Services)
	for i := range s.Services {
		if s.Services[i].Timeout == 0 {
			s.Services[i].Timeout = Duration(100 * time.Millisecond)
		}
	}
	return s
}

func (m MessageSpec) withDefaults() MessageSpec {
	if m.Mode == "" {
		m.Mode = ModePacket
	}
	if m.Mode == ModePacket {
		m.Max = RPCMaxPayload
		return m
	}
	if m.Max == 0 {
		m.Max = 64 << 10
	}
	if m.InFlight == 0 {
		m.InFlight = 64
	}
	if m.Timeout == 0 {
		m.Timeout = Duration(5 * time.Second)
	}
	return m
}

// defaultMemory is 1 MiB beside the messages of mode assemble. Recursion takes a quarter of all (docs/language.md), so that a third more
// than the messages leaves as much for global variables as there is without messages.
func (m MessageSpec) defaultMemory() Bytes {
	const objects = 1 << 20
	if m.Mode != ModeAssemble {
		return objects
	}
	records, _ := m.Records()
	each := min(m.Max, MaxMessage) + RPCMaxPayload // messages are read by windows of a packet
	messages := each * Bytes(min(max(records, 0), 1<<13))
	return min((objects+messages*4/3+1<<20-1)>>20<<20, MaxMemory)
}

// Validate reports everything that is wrong with s, whose defaults are filled in, each as "field: what, what to do".
func (s Spec) Validate() error {
	var errs fieldErrors
	bad := errs.bad
	if !nameRE.MatchString(s.Name) {
		bad("name", "%q is not a lambda name: use 1 to 63 lower-case letters, digits, - and _, beginning with a letter", s.Name)
	}
	if !identifierRE.MatchString(s.Entry) {
		bad("entry", "%q is not a C identifier", s.Entry)
	}
	if s.Once && s.Message.Mode == ModeStream {
		bad("once", "in message mode %q a packet whose answer was lost runs again: use mode %q", ModeStream, ModeAssemble)
	}
	if s.Once && s.Offload {
		bad("once", "a card remembers no requests: leave out offload")
	}
	for _, f := range []struct{ field, path string }{{"source", s.Source}, {"p4", s.P4}, {"rules", s.Rules}} {
		if strings.HasPrefix(f.path, "/") || slices.Contains(strings.Split(f.path, "/"), "..") {
			bad(f.field, "%q leaves the lambda's directory: give a path below it", f.path)
		}
	}
	s.validateP4(bad)
	for i, t := range s.Targets {
		at := fmt.Sprintf("targets[%d]", i)
		if err := t.Check(); err != nil {
			bad(at, "%w", err)
		}
		if slices.Contains(s.Targets[:i], t) {
			bad(at, "%q stands twice", t)
		}
	}
	s.Message.validate(bad)
	if s.Limits.Memory > MaxMemory {
		bad("limits.memory", "%d bytes exceed the maximum of %d", s.Limits.Memory, MaxMemory)
	}
	if d := time.Duration(s.Limits.Time); d < time.Microsecond || d > time.Second {
		bad("limits.time", "%v is not between 1us and 1s", d)
	}
	s.Breaker.validate(bad)
	if s.Codec != "" && s.Codec != "image" {
		bad("codec", "%q is unknown: use \"image\", or leave it out", s.Codec)
	}
	if len(s.Services) > MaxServices {
		bad("services", "%d services exceed the maximum of %d", len(s.Services), MaxServices)
	}
	if len(s.Services) > 0 && s.Message.Mode != ModePacket {
		bad("services", "external calls need message mode %q", ModePacket)
	}
	servers := 0
	for i, svc := range s.Services {
		svc.validate(bad, fmt.Sprintf("services[%d]", i))
		servers += len(svc.Servers())
	}
	if servers > MaxServers {
		bad("services", "%d addresses exceed the maximum of %d", servers, MaxServers)
	}
	return errors.Join(errs...)
}

// validateP4 refuses fields that a lambda behind a match stage of its own cannot use.
func (s Spec) validateP4(bad func(field, format string, args ...any)) {
	if s.P4 == "" {
		if s.Rules != "" {
			bad("rules", "there is no p4 program for which %q could be: name it with p4", s.Rules)
		}
		if s.LenientRules {
			bad("lenient_rules", "there is no p4 program: name it with p4, or leave this out")
		}
		return
	}
	if s.Once {
		bad("once", "a p4 program sees packets, not requests: leave it out")
	}
	for _, t := range s.Targets {
		if t != TargetNIC {
			bad("targets", "a p4 program works on whole packets, which the target %q never sees: use %q alone", t, TargetNIC)
		}
	}
	if s.Message.Mode != ModePacket {
		bad("message.mode", "a p4 program sees packets: leave it out")
	}
}

// checkUsed refuses fields without effect. Defaults are not filled in yet.
func (m MessageSpec) checkUsed() error {
	var errs fieldErrors
	if m.Mode != "" && m.Mode != ModePacket {
		return nil
	}
	const remedy = "leave it out, or set message.mode to \"assemble\" or \"stream\""
	if m.Max != 0 && m.Max != RPCMaxPayload {
		bytes, _ := m.Max.MarshalText()
		errs.bad("message.max", "%s has no effect in mode %q, whose messages have up to %d bytes: "+remedy, bytes, ModePacket, RPCMaxPayload)
	}
	if m.InFlight != 0 {
		errs.bad("message.in_flight", "%d has no effect in mode %q, which keeps no messages: "+remedy, m.InFlight, ModePacket)
	}
	if m.Timeout != 0 {
		errs.bad("message.timeout", "%v has no effect in mode %q, which waits for no further packets: "+remedy, time.Duration(m.Timeout), ModePacket)
	}
	return errors.Join(errs...)
}

func (m MessageSpec) validate(bad func(field, format string, args ...any)) {
	if !slices.Contains([]MessageMode{ModePacket, ModeStream, ModeAssemble}, m.Mode) {
		bad("message.mode", "%q is unknown: use packet, stream or assemble", m.Mode)
		return
	}
	if m.Regions < 0 || m.Regions > MaxRegions {
		bad("message.regions", "%d is not between 0 and %d", m.Regions, MaxRegions)
	}
	if m.Mode == ModePacket {
		if m.Regions > 0 {
			bad("message.regions", "peers write messages: set message.mode to %q or %q", ModeAssemble, ModeStream)
		}
		return
	}
	if m.Max > MaxMessage {
		bad("message.max", "%d bytes exceed the maximum of %d", m.Max, MaxMessage)
	}
	if m.InFlight < 1 || m.InFlight > 4096 {
		bad("message.in_flight", "%d is not between 1 and 4096", m.InFlight)
	}
	if d := time.Duration(m.Timeout); d < 10*time.Millisecond || d > 10*time.Minute {
		bad("message.timeout", "%v is not between 10ms and 10m", d)
	}
}

var units = []struct {
	suffix string
	shift  int
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}, {"", 0}}

// UnmarshalText reads 4096, 64KiB, 16MiB or 1GiB.
func (b *Bytes) UnmarshalText(text []byte) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(string(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64-u.shift)
		if err != nil {
			return fmt.Errorf("%q is not "+sizeForm, text)
		}
		*b = Bytes(n << u.shift)
		return nil
	}
	return nil
}

// MarshalText writes the size with the largest unit that divides it.
func (b Bytes) MarshalText() ([]byte, error) {
	for _, u := range []int{2, 1, 0} {
		if shift := units[u].shift; b != 0 && b%(1<<shift) == 0 {
			return fmt.Appendf(nil, "%d%s", b>>shift, units[u].suffix), nil
		}
	}
	return fmt.Appendf(nil, "%d", uint64(b)), nil
}

// String writes a size as specs do.
func (b Bytes) String() string {
	text, _ := b.MarshalText() // it never fails
	return string(text)
}

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not "+durationForm, text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the duration as time.Duration prints it.
func (d Duration) MarshalText() ([]byte, error) {
	return []byte(time.Duration(d).String()), nil
}
