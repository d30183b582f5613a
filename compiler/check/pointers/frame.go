package pointers

const (
	registers = 11
	stackSize = 512
	slotSize  = 8
	slots     = stackSize / slotSize
)

// A slot is eight bytes of the frame.
type slot struct {
	kind  kind  // of all of them
	bytes uint8 // those that may be of an address
}

// A state is what is known before an instruction.
type state struct {
	reg  [registers]value
	slot [slots]slot // from r10 down
}

// begin is the state in which a function begins. Its frame holds what other functions of the kernel left there, which root's
// programs may read (allow_uninit_stack in kernel/bpf/verifier.c).
func begin() (s state) {
	s.reg[10] = value{kind: stack, known: true}
	for i := range s.slot {
		s.slot[i] = slot{stray, 0xff}
	}
	return s
}

func join(a, b state) state {
	for r := range a.reg {
		a.reg[r] = a.reg[r].join(b.reg[r])
	}
	for i, s := range b.slot {
		a.slot[i] = slot{a.slot[i].kind | s.kind, a.slot[i].bytes | s.bytes}
	}
	return a
}

// in is where n bytes begin and end that are at a distance from r10, counted from the frame's lowest.
func in(at, n int) (from, to int) {
	return max(at+stackSize, 0), min(at+n+stackSize, stackSize)
}

// whole tells whether they are a slot.
func whole(at, n int) bool { return n == slotSize && at%slotSize == 0 && at >= -stackSize && at < 0 }

// of is the slot that a byte is in, and its bit.
func (s *state) of(b int) (*slot, uint8) { return &s.slot[slots-1-b/slotSize], 1 << (b % slotSize) }

// kept is what n bytes of the frame may hold.
func (s *state) kept(at, n int) kind {
	from, to := in(at, n)
	if whole(at, n) {
		slot, _ := s.of(from)
		return slot.kind
	}
	for b := from; b < to; b++ {
		if slot, bit := s.of(b); slot.bytes&bit != 0 {
			return stray
		}
	}
	return number
}

// put has n bytes of the frame written over.
func (s *state) put(at, n int, k kind) {
	from, to := in(at, n)
	if whole(at, n) {
		slot, _ := s.of(from)
		slot.kind, slot.bytes = k, 0
		if k&addresses != 0 {
			slot.bytes = 0xff
		}
		return
	}
	for b := from; b < to; b++ {
		slot, bit := s.of(b)
		slot.bytes &^= bit
		slot.tear()
	}
}

// blur has n bytes of the frame perhaps written over: a helper that fails does not, and where an address is not known, only one
// of many is.
func (s *state) blur(at, n int) {
	from, to := in(at, n)
	for b := from; b < to; b++ {
		slot, _ := s.of(b)
		slot.tear()
	}
}

// tear is for a slot of which a part is no longer what it was.
func (s *slot) tear() {
	if s.bytes == 0 {
		s.kind = number
	} else {
		s.kind |= stray
	}
}

// resize is for a packet that is given another size.
func (s *state) resize() {
	for r := range s.reg {
		if v := &s.reg[r]; v.may(packet) {
			*v = value{kind: v.kind.stale()}
		}
	}
	for i := range s.slot {
		s.slot[i].kind = s.slot[i].kind.stale()
	}
}
