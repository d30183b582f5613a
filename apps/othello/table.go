package othello

// A table keeps what nodes are worth, one for each place. It has no more memory than it was made with: what comes later takes the place.
type table struct {
	entries    []entry
	generation uint32 // entries of others are forgotten
}

const tableSize = 1 << 15 // entries, of 32 bytes

// entry is what is known of a board.
type entry struct {
	board      Board
	generation uint32
	value      Value
	depth      uint8
	bound      bound
	best       uint8
}

// bound is what an entry's value is of the board's.
type bound uint8

const (
	exact bound = iota
	atLeast
	atMost
)

func newTable() table {
	t := table{entries: make([]entry, tableSize)}
	clear(t.entries) // written once, the memory is there, and no search waits for the kernel to map it
	return t
}

// forget empties the table, in no time but once in 2^32.
func (t *table) forget() {
	if t.generation++; t.generation == 0 {
		clear(t.entries)
		t.generation = 1
	}
}

// find is the place of a board, which has it if known.
func (t *table) find(b Board) (e *entry, known bool) {
	e = &t.entries[b.hash()%tableSize]
	return e, e.generation == t.generation && e.board == b
}

// decides reports whether the value is that of a node, or on the same side of alpha and beta. A value of another depth never is: the result
// would depend on what was searched before.
func (e *entry) decides(depth int, alpha, beta Value) bool {
	if int(e.depth) != depth {
		return false
	}
	return e.bound == exact || e.bound == atLeast && e.value >= beta || e.bound == atMost && e.value <= alpha
}

func (t *table) set(e *entry, b Board, depth int, alpha, beta, value Value, best int) {
	*e = entry{board: b, generation: t.generation, value: value, depth: uint8(depth), best: uint8(best)}
	switch {
	case value >= beta:
		e.bound = atLeast
	case value <= alpha:
		e.bound = atMost
	}
}
