package pointers

const (
	registers = 11
	stackSize = 512
	slotSize  = 8
	slots     = stackSize / slotSize
)

// A slot is eight bytes of the frame.
type slot struct {
	kind  kind  // of all eight
	bytes uint8 // mask of those that may belong to an address
}

// A state is what is known before an instruction.
type state struct {
	reg  [registers]value
	slot [slots]slot // from r10 down
}

// begin is the state in which a function begins. Its frame holds what other kernel functions left there, and root's programs may read it
// (allow_uninit_stack in kernel/bpf/verifier.c).
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

// in turns n bytes at a distance from r10 into their begin and end, counted from the frame's lowest byte.
func in(at, n int) (from, to int) {
	return max(at+stackSize, 0), min(at+n+stackSize, stackSize)
}

// whole tells whether n bytes at a distance from r10 are exactly one slot.
func whole(at, n int) bool { return n == slotSize && at%slotSize == 0 && at >= -stackSize && at < 0 }

// of returns the slot of a byte, and the byte's bit in slot.bytes.
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

// put overwrites n bytes of the frame.
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

// blur is for n bytes of the frame that may have been overwritten: a helper that fails writes nothing, and a store to an unknown address
// overwrites only some of them.
func (s *state) blur(at, n int) {
	from, to := in(at, n)
	for b := from; b < to; b++ {
		slot, _ := s.of(b)
		slot.tear()
	}
}

// tear is for a slot that was partly overwritten.
func (s *slot) tear() {
	if s.bytes == 0 {
		s.kind = number
	} else {
		s.kind |= stray
	}
}

// resize is for a call that resizes the packet.
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
