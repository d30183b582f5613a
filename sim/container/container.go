// Package container has what simulators keep messages in: a [Queue] and a [Slab]. All operations take amortised constant time, and memory is
// as much as was needed at most.
package container

// Queue gives back what was pushed first. The zero Queue is empty. Push and Pop take amortised constant time.
type Queue[T any] struct {
	items []T
	head  int
}

// Len counts what is in it.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// Push adds t at the end.
func (q *Queue[T]) Push(t T) { q.items = append(q.items, t) }

// Pop removes the first. It panics if there is none.
func (q *Queue[T]) Pop() T {
	t := q.items[q.head]
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head > 64 && q.head > len(q.items)/2:
		q.items, q.head = q.items[:copy(q.items, q.items[q.head:])], 0
	}
	return t
}

// Slab keeps things under small numbers, which it uses again.
type Slab[T any] struct {
	items []T
	free  []int32
}

// Len counts what is in it.
func (s *Slab[T]) Len() int { return len(s.items) - len(s.free) }

// At is what has that number, until the next Put.
func (s *Slab[T]) At(i int32) *T { return &s.items[i] }

// Put keeps t, and gives it a number.
func (s *Slab[T]) Put(t T) int32 {
	if last := len(s.free) - 1; last >= 0 {
		i := s.free[last]
		s.free = s.free[:last]
		s.items[i] = t
		return i
	}
	s.items = append(s.items, t)
	return int32(len(s.items) - 1)
}

// Take removes what has that number.
func (s *Slab[T]) Take(i int32) T {
	s.free = append(s.free, i)
	return s.items[i]
}
