package container

import (
	"math/rand/v2"
	"testing"
)

// A queue and a slab are as a slice and a map, whatever is done with them.
func TestContainers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var q Queue[int]
	var s Slab[int]
	var line []int
	kept := map[int32]int{}
	most := 0
	for n := range 100_000 {
		// It grows and shrinks by turns.
		if grow := n/1000%2 == 0; r.IntN(4) == 0 != grow || len(line) == 0 {
			q.Push(n)
			line = append(line, n)
			i := s.Put(n)
			if _, ok := kept[i]; ok {
				t.Fatalf("number %d is given twice", i)
			}
			kept[i] = n
		} else {
			if got := q.Pop(); got != line[0] {
				t.Fatalf("popped %d, want %d", got, line[0])
			}
			line = line[1:]
			for i, want := range kept {
				if at, got := *s.At(i), s.Take(i); at != want || got != want {
					t.Fatalf("number %d has %d and %d, want %d", i, at, got, want)
				}
				delete(kept, i)
				break
			}
		}
		most = max(most, len(kept))
		if q.Len() != len(line) || s.Len() != len(kept) {
			t.Fatalf("%d and %d are kept, want %d and %d", q.Len(), s.Len(), len(line), len(kept))
		}
	}
	if len(s.items) != most {
		t.Errorf("the slab has %d places, and never kept more than %d", len(s.items), most)
	}
}
