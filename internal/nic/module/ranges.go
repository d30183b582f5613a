package module

import "fmt"

// Ranges hands out runs of consecutive indices, first fit.
type Ranges struct {
	used []bool
	from uint32 // indices below are never handed out
}

// NewRanges hands out the indices in [from, size).
func NewRanges(from, size uint32) Ranges {
	return Ranges{used: make([]bool, size), from: from}
}

// Take marks n consecutive free indices as used, and returns the first.
func (r *Ranges) Take(n uint32) (uint32, error) {
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
			r.Mark(base, n, true)
			return base, nil
		}
	}
	return 0, fmt.Errorf("no %d consecutive of %d are free", n, len(r.used))
}

// Mark marks n indices from base on as used or free.
func (r *Ranges) Mark(base, n uint32, used bool) {
	for i := base; i < base+n && i < uint32(len(r.used)); i++ {
		r.used[i] = used
	}
}

// Used counts the indices that are in use.
func (r *Ranges) Used() (n int) {
	for _, used := range r.used {
		if used {
			n++
		}
	}
	return n
}
