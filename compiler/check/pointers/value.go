package pointers

// A kind is the set of what a register or a slot of the stack may hold.
type kind uint16

const (
	number  kind = 1 << iota // any, but for what follows
	null                     // zero where there could be a pointer
	packet                   // its begin and end, and what is between
	memory                   // of a map, which holds numbers alone
	table                    // a map, as helpers take it
	context                  // the program's argument, where it begins
	stack                    // the function's own frame
	frame                    // that of a caller
	stray                    // what the verifier takes for a number, but may be an address, or a part of one
)

// addresses are what nobody may learn.
const addresses = packet | memory | table | context | stack | frame | stray

// anything is what memory may hold that is not followed.
const anything = number | addresses

type value struct {
	kind kind
	// known is whether n is: a number's value, a distance from r10, the instruction that loaded a table. What may be of several
	// kinds is not known so well.
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

// is tells whether the value is one of these for sure.
func (v value) is(k kind) bool { return v.kind&^k == 0 }

// may tells whether the value can be one of these.
func (v value) may(k kind) bool { return v.kind&k != 0 }

// span is the part of the frame that an access of n bytes may be in.
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

// stale is what a pointer into the packet becomes when the packet is given another size: the verifier has a number for it, which
// it lets be added to without limit.
func (k kind) stale() kind {
	if k&packet == 0 {
		return k
	}
	return k&^packet | stray
}

// sum is what becomes of an address and a number that are added, or of a number that is taken from an address.
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
