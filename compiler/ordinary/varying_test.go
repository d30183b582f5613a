package ordinary_test

import "testing"

// Arrays of variable length work as in a process. One without room is a fault, after which there is room again.
func TestVarying(t *testing.T) {
	r := put(t, "varying")
	for which := range uint32(5) {
		for n := uint32(1); n < 40; n += 1 + n/4 {
			agree(t, r, words(which, n))
		}
	}
	agree(t, r, words(0, 4096))
	for _, n := range []uint32{4097, 1 << 30, 1<<32 - 1} {
		fault(t, r, words(0, n))
	}
	fault(t, r, words(2, 2000))
	agree(t, r, words(0, 4096))
}
