package target

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/api"
)

// An Object is a variable of a lambda that needs memory.
type Object struct {
	Name    string  `json:"name"`
	Size    uint64  `json:"size"`
	Pattern Pattern `json:"pattern"`
	Hint    string  `json:"hint,omitempty"` // of the author's: ctm, imem, emem, export, hot, read_mostly
	Uses    int     `json:"uses"`           // instructions that access it, as far as known
}

// A Placement says where an object goes and why.
type Placement struct {
	Object Object `json:"object"`
	Memory string `json:"memory,omitempty"` // "" where none takes it
	Cycles [2]int `json:"cycles"`
	Why    string `json:"why"`
}

// The hints that name no memory.
const (
	hot        = "hot"
	readMostly = "read_mostly"
)

// Place finds a memory for each object: that of its hint, else the fastest that takes objects of its kind and size and has room. If room is
// short, hot objects come first, then those that are used most for their size. An object with the hint read_mostly is placed as such,
// unless it is read-only or belongs to one request.
func (m *Model) Place(objects []Object) []Placement {
	order := slices.Clone(objects)
	notes := map[string]string{}
	for i, o := range order {
		order[i], notes[o.Name] = m.heed(o)
	}
	slices.SortStableFunc(order, func(a, b Object) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(density(b), density(a)), cmp.Compare(a.Size, b.Size),
			strings.Compare(a.Name, b.Name))
	})
	left := make([]uint64, len(m.Memories))
	for i, memory := range m.Memories {
		left[i] = uint64(memory.Size)
	}
	placed := make([]Placement, 0, len(order))
	for _, o := range order {
		p := m.place(o, left)
		p.Why += notes[o.Name]
		placed = append(placed, p)
	}
	return placed
}

// heed applies an object's hint on this processor. If no memory has the hint's name, it says what the hint came to.
func (m *Model) heed(o Object) (Object, string) {
	hint := o.Hint
	switch {
	case hint == "" || m.hears(hint):
		return o, ""
	case hint == hot:
		return o, "; __hot: before others"
	case hint == readMostly && (o.Pattern == Written || o.Pattern == ReadMostly):
		o.Hint, o.Pattern = "", ReadMostly
		return o, "; __read_mostly, as its author says"
	case hint == readMostly:
		o.Hint = ""
		return o, "; __read_mostly says nothing of what is " + string(o.Pattern)
	default:
		o.Hint = ""
		return o, "; __" + hint + " is for another processor"
	}
}

func (m *Model) hears(hint string) bool {
	return slices.ContainsFunc(m.Memories, func(memory Memory) bool { return slices.Contains(memory.Hints, hint) })
}

// rank puts first what the author asked for.
func rank(o Object) int {
	switch o.Hint {
	case "":
		return 2
	case hot:
		return 1
	default:
		return 0
	}
}

func density(o Object) float64 { return float64(o.Uses) / float64(max(o.Size, 8)) }

func (m *Model) place(o Object, left []uint64) Placement {
	var passed []string
	for i, memory := range m.Memories {
		reason := memory.refuses(o, left[i])
		if reason != "" {
			if reason != unfit {
				passed = append(passed, memory.Name+": "+reason)
			}
			continue
		}
		left[i] -= o.Size
		why := "the fastest for what is " + string(o.Pattern)
		if slices.Contains(memory.Hints, o.Hint) {
			why = "asked for with __" + o.Hint
		}
		if len(passed) > 0 {
			why += "; not " + strings.Join(passed, ", ")
		}
		return Placement{Object: o, Memory: memory.Name, Cycles: memory.Cycles, Why: why}
	}
	return Placement{Object: o, Why: strings.Join(append(passed, "no memory takes it"), ", ")}
}

// unfit means that a memory is not meant for an object, which is not reported.
const unfit = "unfit"

// refuses says why the memory does not take an object; "" if it does.
func (memory *Memory) refuses(o Object, left uint64) string {
	largest := memory.Largest
	if largest == 0 {
		largest = memory.Size
	}
	asked := slices.Contains(memory.Hints, o.Hint)
	switch {
	case !asked && o.Hint != "" && o.Hint != hot:
		return unfit
	case !asked && !slices.Contains(memory.Patterns, o.Pattern):
		return unfit
	case !asked && o.Size > uint64(largest):
		return fmt.Sprintf("for objects of up to %v", largest)
	case o.Size > left:
		return fmt.Sprintf("%v left", api.Bytes(left))
	default:
		return ""
	}
}
