package memcached

// countersPerItem is how many counters a sketch should have for an item that the cache holds. With half as many the cache hits some 0.8 % less
// often, where keys are asked for as in TestHitRate.
const countersPerItem = 16

// lineSize is how many counters a line of the sketch has.
const lineSize = uint64(GetMcSketchLimitMC_LINE)

// A sketch estimates how often each key was asked for of late. The NIC programs count (sketch.h).
type sketch []uint64 // of one-byte counters

// frequency is how often a key was asked for, or more.
func (s sketch) frequency(hash uint64) uint8 {
	line := hash & (uint64(len(s))*8/lineSize - 1) * lineSize
	least := uint8(GetMcSketchLimitMC_FREQUENCY_MAX)
	for i := range uint64(GetMcSketchLimitMC_ROWS) {
		at := line + hash>>(40+6*i)%lineSize
		least = min(least, uint8(s[at/8]>>(at%8*8)))
	}
	return least
}

// period is how many GETs there should be from one time that the sketch is aged to the next: 32 for an item of the cache. With half as many, the
// keys that a cache just holds are counted too seldom to tell them from others; with twice as many it hits no more, and learns more slowly.
func (s sketch) period() uint64 { return 2 * 8 * uint64(len(s)) }

// age makes every count half of what it was, so that what was asked for lately counts for more. What is counted at this moment may be lost.
func (s sketch) age() {
	for i := range s {
		s[i] = s[i] >> 1 & 0x7f7f7f7f7f7f7f7f
	}
}
