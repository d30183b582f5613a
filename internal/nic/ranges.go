package nic

import "fmt"

// ranges hands out runs of consecutive indices, first fit.
type ranges struct {
	used []bool
	from uint32 // indices below are never handed out
}

func newRanges(from, size uint32) ranges {
	return ranges{used: make([]bool, size), from: from}
}

func (r *ranges) take(n uint32) (uint32, error) {
	if n == 0 {
		return 0, nil
	}
	run := uint32(0)
	for i := r.from; i < uint32(len(r.used)); i++ {
		if run++; r.used[i] {
			run = 0
		}
		if run == n {
			base := i + 1 - n
			r.mark(base, n, true)
			return base, nil
		}
	}
	return 0, fmt.Errorf("no %d consecutive of %d are free", n, len(r.used))
}

func (r *ranges) mark(base, n uint32, used bool) {
	for i := base; i < base+n && i < uint32(len(r.used)); i++ {
		r.used[i] = used
	}
}
