package packets

import "math/rand/v2"

// interesting are values at which lengths and counts tip over.
var interesting = []byte{0x00, 0x01, 0x02, 0x3f, 0x40, 0x7f, 0x80, 0xfe, 0xff}

// Mutate returns a frame that differs from the given one in a few places: bytes, bits, words at their limits, and its
// length, which stays at least an Ethernet header's. One in eight it leaves as it is.
func Mutate(r *rand.Rand, frame []byte) []byte {
	if r.IntN(8) == 0 {
		return frame
	}
	for range 1 + r.IntN(3) {
		at := r.IntN(len(frame))
		switch r.IntN(6) {
		case 0:
			frame[at] ^= 1 << r.IntN(8)
		case 1:
			frame[at] = byte(r.Uint32())
		case 2:
			frame[at] = interesting[r.IntN(len(interesting))]
		case 3: // a word, most significant byte first
			word := frame[at:min(len(frame), at+4)]
			clear(word)
			word[len(word)-1] = interesting[r.IntN(len(interesting))]
		case 4:
			frame = frame[:max(14, at)]
		case 5:
			frame = append(frame, make([]byte, r.IntN(1500))...)
		}
	}
	return frame
}
