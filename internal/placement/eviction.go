package placement

import (
	"fmt"
	"strings"
)

// Eviction says why Replace took a microservice off its node.
type Eviction struct {
	Node   string
	Broken []Violation // that made it or others leave
	Cost   int64       // of its move
	With   []string    // app/microservice: those that left together with it, as one was not enough
	All    int64       // what the moves of all these cost
	Choice bool        // others could have left instead; then that would have cost Instead, in sum
	// Instead is what those cost that would have had to leave, were this one to stay. It is not less than All where all sets were tried.
	Instead int64
}

func (e *evictor) eviction(t task, gone []task, broken []Violation, instead func(task) ([]task, bool)) *Eviction {
	why := &Eviction{Node: e.topo.name(t.d.at[t.i]), Broken: broken, Cost: t.service().moveCost(), All: moveCosts(gone)}
	for _, other := range gone {
		if other != t {
			why.With = append(why.With, other.d.App.Name+"/"+other.service().Name)
		}
	}
	if instead != nil {
		var others []task
		if others, why.Choice = instead(t); why.Choice {
			why.Instead = moveCosts(others)
		}
	}
	return why
}

// mostNamed bounds lists in texts.
const mostNamed = 5

// String is a line of text.
func (e *Eviction) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "it left %s, since %s; its move costs %d", e.Node, violations(e.Broken), e.Cost)
	if n := len(e.With); n > 0 {
		fmt.Fprintf(&b, ", and %d with %s", e.All, strings.Join(e.With[:min(n, mostNamed)], ", "))
		if n > mostNamed {
			fmt.Fprintf(&b, " and %d more", n-mostNamed)
		}
	}
	if e.Choice {
		fmt.Fprintf(&b, "; were it to stay, moves would cost %d", e.Instead)
	} else {
		b.WriteString("; no other move would do")
	}
	return b.String()
}

// violations lists some in words.
func violations(all []Violation) string {
	var texts []string
	for _, v := range all[:min(len(all), mostNamed)] {
		texts = append(texts, v.Error())
	}
	if n := len(all) - mostNamed; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, ", ")
}
