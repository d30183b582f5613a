package nanoservice

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/random"
)

// The tree of the paper's Table 2: nothing in it is random. Finish times and utilisations are those of the authors' simulator.
func TestTable2(t *testing.T) {
	for _, c := range []struct {
		name        string
		i           Interface
		reduce      event.Time
		finish      event.Time
		utilisation float64 // per cent
	}{
		{"DMA", DMA, 500 * ns, 210000 * ns, 69.75},
		{"DDIO", DDIO, 500 * ns, 190200 * ns, 77.02},
		{"L-NIC of 600 ns", LNIC(600 * ns), 500 * ns, 182000 * ns, 80.49},
		{"L-NIC of 400 ns", LNIC(400 * ns), 500 * ns, 178200 * ns, 82.20},
		{"L-NIC of 200 ns", LNIC(200 * ns), 500 * ns, 174600 * ns, 83.90},
		{"L-NIC of 200 ns that reduces", LNIC(200 * ns), 0, 118800 * ns, 82.20},
	} {
		tree := &Tree{
			Hosts: 1000, Depth: 8, Branches: random.Number(5), Map: random.Fixed(1000 * ns), Reduce: c.reduce, Interface: c.i, Wire: 1000 * ns,
		}
		got, err := tree.Run(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got.Messages != 195311 || got.Finish != c.finish || math.Abs(100*got.Utilisation-c.utilisation) > 0.005 {
			t.Errorf("%s: %d messages, %v, %.3f %%; want %v, %.2f %%", c.name, got.Messages, got.Finish.Duration(), 100*got.Utilisation,
				c.finish.Duration(), c.utilisation)
		}
	}
}

// The search of Othello. Medians and tails are those of 300 runs of the authors' simulator.
func TestOthello(t *testing.T) {
	type figure struct{ p50, p99 float64 } // µs
	for _, c := range []struct {
		depth, runs int
		want        [4]figure
	}{
		{2, 3000, [4]figure{{11.03, 15.40}, {10.52, 14.85}, {7.52, 11.62}, {5.00, 6.03}}},
		{3, 500, [4]figure{{21.38, 24.38}, {20.10, 22.96}, {14.18, 16.88}, {9.24, 10.27}}},
		{4, 300, [4]figure{{31.07, 34.29}, {29.17, 31.79}, {20.51, 23.85}, {13.49, 14.50}}},
	} {
		for i, tree := range []*Tree{{Interface: DMA}, {Interface: DDIO}, {Interface: LNIC(200 * ns)}, {Interface: LNIC(200 * ns)}} {
			tree.Hosts, tree.Depth, tree.Branches, tree.Map, tree.Wire = 2500, c.depth, OthelloBranches, OthelloMap, 1000*ns
			if i < 3 {
				tree.Reduce = 500 * ns
			}
			var finish []float64
			for seed := range uint64(c.runs) {
				got, err := tree.Run(t.Context(), seed)
				if err != nil {
					t.Fatal(err)
				}
				finish = append(finish, got.Finish.Micros())
			}
			slices.Sort(finish)
			want, got := c.want[i], figure{finish[c.runs/2], finish[c.runs*99/100]}
			if math.Abs(got.p50/want.p50-1) > 0.02 || math.Abs(got.p99/want.p99-1) > 0.05 {
				t.Errorf("depth %d by %s, reduce %v: %.2f, want %.2f", c.depth, tree.Interface.Name, tree.Reduce.Duration(), got, want)
			}
		}
	}
}

// One seed gives one result, and another gives another.
func TestSeeds(t *testing.T) {
	tree := &Tree{Hosts: 100, Depth: 4, Branches: OthelloBranches, Map: OthelloMap, Reduce: 500 * ns, Interface: DMA, Wire: 1000 * ns}
	run := func(seed uint64) Result {
		t.Helper()
		r, err := tree.Run(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if a, b := run(7), run(7); a != b {
		t.Errorf("seed 7 gave %+v and %+v", a, b)
	}
	if a, b := run(7), run(8); a.Finish == b.Finish {
		t.Errorf("seeds 7 and 8 gave %+v", a)
	}
}

func TestBadTrees(t *testing.T) {
	for want, change := range map[string]func(*Tree){
		"hosts: 0 is not between 1 and 1000000": func(t *Tree) { t.Hosts = 0 },
		"depth: 31 is not between 1 and 30":     func(t *Tree) { t.Depth = 31 },
		"wire: the time is negative":            func(t *Tree) { t.Wire = -1 },
	} {
		tree := &Tree{Hosts: 1, Depth: 1, Branches: random.Number(1), Map: random.Fixed(ns)}
		change(tree)
		if _, err := tree.Run(t.Context(), 0); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	endless := &Tree{Hosts: 10, Depth: 30, Branches: random.Number(2), Map: random.Fixed(ns)}
	if _, err := endless.Run(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was given up ended with %v", err)
	}
}

// A tree that grows beyond all memory is refused before it does.
func TestTooManyMessages(t *testing.T) {
	w := &search{Tree: &Tree{Hosts: 10, Depth: 30, Branches: random.Number(1000), Map: random.Fixed(ns)}}
	s := newSim(&Machine{Cores: 1}, 10, w, 1)
	s.fabric, s.most = ideal(0), 1500
	if err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 1500 messages and packets are on their way") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkTree(b *testing.B) {
	tree := &Tree{
		Hosts: 1000, Depth: 8, Branches: random.Number(5), Map: random.Fixed(1000 * ns), Reduce: 500 * ns, Interface: LNIC(200 * ns), Wire: 1000 * ns,
	}
	var messages uint64
	for b.Loop() {
		r, err := tree.Run(b.Context(), 1)
		if err != nil {
			b.Fatal(err)
		}
		messages += r.Messages
	}
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
}

// A study has the results of its runs, however many of them go on at once.
func TestStudy(t *testing.T) {
	tree := Tree{Hosts: 100, Depth: 4, Branches: OthelloBranches, Map: OthelloMap, Reduce: 500 * ns, Interface: DMA, Wire: 1000 * ns}
	fast := tree
	fast.Interface = LNIC(200 * ns)
	var told atomic.Int64
	s := &Study{
		Trees: []Case{{"slow", tree}, {"fast", fast}}, Runs: 50, Seed: 3,
		Progress: func(done, all int) {
			if all != 100 || done < 1 || done > all {
				t.Errorf("%d of %d are done", done, all)
			}
			told.Add(1)
		},
	}
	got, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range s.Trees {
		want := Outcome{Case: c}
		for seed := range uint64(50) {
			r, err := c.Run(t.Context(), 3+seed)
			if err != nil {
				t.Fatal(err)
			}
			want.Finish = append(want.Finish, r.Finish)
			want.Utilisation += r.Utilisation / 50
			want.Messages += r.Messages
		}
		slices.Sort(want.Finish)
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("%s: %+v, want %+v", c.Name, got[i], want)
		}
		if p := want.Percentile(50); p != want.Finish[24] || want.Percentile(99) != want.Finish[49] || want.Percentile(0) != want.Finish[0] {
			t.Errorf("the median is %v", p)
		}
	}
	if told.Load() != 100 {
		t.Errorf("progress was told %d times", told.Load())
	}
	s.Trees[1].Depth = 0
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "fast: depth: 0 is not") {
		t.Errorf("a bad tree gave %v", err)
	}
}
