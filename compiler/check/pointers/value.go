package pointers

// A kind is the set of what a register or a stack slot may hold.
type kind uint16

const (
	number  kind = 1 << iota // any that is none of the following
	null                     // zero, which may be NULL
	packet                   // from its beginning to its end
	memory                   // of a map, which holds only numbers
	table                    // a map, as helpers take it
	context                  // the beginning of the program's argument
	stack                    // the function's own frame
	frame                    // a caller's frame
	stray                    // a number to the verifier that may be an address, or some bytes of one
)

// addresses are the kinds that nobody may learn.
const addresses = packet | memory | table | context | stack | frame | stray

// anything is what memory that is not followed may hold.
const anything = number | addresses

type value struct {
	kind kind
	// known is whether n is known: a number's value, a distance from r10, the instruction that loaded a table. A value of several kinds
	// has no known n.
	known bool
	n     int32
}

func constant(n int64) value {
	k := number
	if n == 0 {
		k = null
	}
	return value{k, n == int64(int32(n)), int32(n)}
}

// is tells whether the value is surely of these kinds.
func (v value) is(k kind) bool { return v.kind&^k == 0 }

// may tells whether the value can be of one of these kinds.
func (v value) may(k kind) bool { return v.kind&k != 0 }

// span is the range of the frame that an access of n bytes may touch.
func (v value) span(offset int16, n int) (int, int) {
	if v.known {
		return int(v.n) + int(offset), n
	}
	return -stackSize, stackSize
}

func (v value) join(w value) value {
	if v == w {
		return v
	}
	return value{kind: v.kind | w.kind}
}

// stale is what a pointer into the packet becomes when the packet is resized: to the verifier it is then a number, with no limit on what
// may be added.
func (k kind) stale() kind {
	if k&packet == 0 {
		return k
	}
	return k&^packet | stray
}

// sum is the result of adding a number to an address, or of subtracting it.
func sum(dst, src value, sign int64) value {
	v := value{}
	if src.may(number | null) {
		v.kind = dst.kind & addresses
	}
	if dst.may(number | null) {
		v.kind |= src.kind & addresses
		if src.may(number | null) {
			v.kind |= number
		}
	}
	if at := int64(dst.n) + sign*int64(src.n); dst.is(stack) && dst.known && src.known && at >= -stackSize && at <= 0 {
		v.known, v.n = true, int32(at)
	}
	return v
}
