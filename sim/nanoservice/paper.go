package nanoservice

import (
	"fmt"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/random"
)

// Paper names the experiments of the paper that Experiment has.
var Paper = []string{"table2", "figure5", "figure6"}

// Experiment is one of the paper's, with the seeds from seed on.
func Experiment(name string, seed uint64) (*Study, error) {
	switch name {
	case "table2":
		return table2(), nil
	case "figure5":
		return othello(seed, 5), nil
	case "figure6":
		return othello(seed, 1, 2, 3, 4, 5, PaperDepth), nil
	}
	return nil, fmt.Errorf("experiment %q: there are table2, figure5 and figure6", name)
}

// table2 asks how busy 1,000 hosts are with a tree in which nothing is random.
func table2() *Study {
	s := &Study{Runs: 1}
	tree := Tree{Hosts: 1000, Depth: 8, Branches: random.Number(5), Map: random.Fixed(event.Microsecond), Reduce: ReduceTime, Wire: WireTime}
	for _, i := range []Interface{DMA, DDIO, LNIC(600 * ns), LNIC(400 * ns), LNIC(lnicDelay)} {
		tree.Interface = i
		s.Trees = append(s.Trees, Case{i.Name, tree})
	}
	tree.Reduce = 0
	s.Trees = append(s.Trees, Case{tree.Interface.Name + offloaded, tree})
	return s
}

// paperRuns is how many searches the paper has of each kind.
const paperRuns = 300

// othello searches for moves of Othello on 2,500 hosts.
func othello(seed uint64, depths ...int) *Study {
	s := &Study{Runs: paperRuns, Seed: seed}
	for _, depth := range depths {
		for _, i := range []Interface{DMA, DDIO, LNIC(lnicDelay)} {
			s.Trees = append(s.Trees, othelloCase(depth, i, false))
		}
		s.Trees = append(s.Trees, othelloCase(depth, LNIC(lnicDelay), true))
	}
	return s
}

const (
	lnicDelay = 200 * ns
	offloaded = ", reduce in the NIC" // in the name of a case whose reduce takes no time
)

// OthelloOffloaded is the paper's fastest search, of each of the depths: by L-NIC of 200 ns, with the reduce offload.
func OthelloOffloaded(seed uint64, depths ...int) *Study {
	s := &Study{Runs: paperRuns, Seed: seed}
	for _, depth := range depths {
		s.Trees = append(s.Trees, othelloCase(depth, LNIC(lnicDelay), true))
	}
	return s
}

func othelloCase(depth int, i Interface, offload bool) Case {
	if depth >= 5 {
		i.LLC = 100
	}
	c := Case{i.Name, Tree{Hosts: 2500, Depth: depth, Branches: OthelloBranches, Map: OthelloMap, Reduce: ReduceTime, Interface: i, Wire: WireTime}}
	if offload {
		c.Name, c.Reduce = c.Name+offloaded, 0
	}
	return c
}

// PaperDepth is the greatest depth that the paper searches.
const PaperDepth = 6

// PaperRatio is how many times longer the paper's search on one core takes than its fastest one on many hosts: the 99th percentiles, at
// PaperRatioDepth, of Figure 5.
const (
	PaperRatio      = 30
	PaperRatioDepth = 5
)

// What the paper has for the time that a core takes to reduce, and for that from NIC to NIC.
const (
	ReduceTime = 500 * event.Nanosecond
	WireTime   = event.Microsecond
)
