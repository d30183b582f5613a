package memcached

import "iter"

// countersPerItem is how many counters a sketch should have for an item that the cache holds. With half as many, 0.7 % fewer of the GETs in
// TestHitRate are hits.
const countersPerItem = 16

// lineSize is how many counters a line of the sketch has.
const lineSize = uint64(GetMcSketchLimitMC_SKETCH_LINE)

// A sketch estimates how often each key was asked for of late. The NIC programs count (sketch.h).
type sketch []uint64 // of one-byte counters

// counters yields the places of a key's counters: a word, and how far the counter is shifted in it.
func (s sketch) counters(hash uint64) iter.Seq2[*uint64, uint64] {
	return func(yield func(*uint64, uint64) bool) {
		line := oneOf(len(s)*8/int(lineSize), hash) * lineSize
		for i := range uint64(GetMcSketchLimitMC_SKETCH_ROWS) {
			at := line + hash>>(uint64(GetMcSketchLimitMC_SKETCH_SHIFT)+uint64(GetMcSketchLimitMC_SKETCH_BITS)*i)%lineSize
			if !yield(&s[at/8], at%8*8) {
				return
			}
		}
	}
}

// frequency is how often a key was asked for, or more.
func (s sketch) frequency(hash uint64) uint8 {
	least := uint8(GetMcSketchLimitMC_FREQUENCY_MAX)
	for word, shift := range s.counters(hash) {
		least = min(least, uint8(*word>>shift))
	}
	return least
}

// period is how many GETs there should be from one time that the sketch is aged to the next: two for a counter. With half as many, 0.4 % fewer of
// the GETs in TestHitRate are hits. With twice as many, 0.1 % more are, but 2 % fewer after other keys have become the ones that are asked for most.
func (s sketch) period() uint64 { return 2 * 8 * uint64(len(s)) }

// age makes every count half of what it was, so that what was asked for lately counts for more. What is counted at this moment may be lost.
func (s sketch) age() {
	for i := range s {
		s[i] = s[i] >> 1 & 0x7f7f7f7f7f7f7f7f
	}
}
