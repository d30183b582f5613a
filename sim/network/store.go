package network

// ring is a queue.
type ring[T any] struct {
	items []T
	head  int
}

func (r *ring[T]) len() int { return len(r.items) - r.head }
func (r *ring[T]) push(t T) { r.items = append(r.items, t) }

func (r *ring[T]) pop() T {
	t := r.items[r.head]
	r.head++
	switch {
	case r.head == len(r.items):
		r.items, r.head = r.items[:0], 0
	case r.head > 64 && r.head > len(r.items)/2:
		r.items, r.head = r.items[:copy(r.items, r.items[r.head:])], 0
	}
	return t
}

// slab keeps things under small numbers.
type slab[T any] struct {
	items []T
	free  []int32
}

func (s *slab[T]) at(i int32) *T { return &s.items[i] }

func (s *slab[T]) put(t T) int32 {
	if last := len(s.free) - 1; last >= 0 {
		i := s.free[last]
		s.free = s.free[:last]
		s.items[i] = t
		return i
	}
	s.items = append(s.items, t)
	return int32(len(s.items) - 1)
}

func (s *slab[T]) take(i int32) T {
	s.free = append(s.free, i)
	return s.items[i]
}
