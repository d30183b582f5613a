package suite

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/nanoservice"
	"github.com/lambdanic/lambdanic/sim/random"
)

const sourceSimulated = "simulated; the same on every machine"

func runSimulators(ctx context.Context, _ *stand.Stand, o measure.Options) ([]report.Result, error) {
	speed, err := simulatorSpeed(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Log("simulators: JBSQ(2) and RSS")
	tail, err := dispatchTails(ctx, 1_000_000)
	if err != nil {
		return nil, err
	}
	trees, err := deepTrees(ctx, o)
	if err != nil {
		return nil, err
	}
	return append(append(speed, tail), trees...), nil
}

// simulatorSpeed is how many messages a second are simulated on one core.
func simulatorSpeed(ctx context.Context, o measure.Options) ([]report.Result, error) {
	table2, err := nanoservice.Experiment("table2", 0)
	if err != nil {
		return nil, err
	}
	tree := table2.Trees[len(table2.Trees)-1]
	load := nanoservice.Load{
		Hosts: 100, Flows: 1000, Wire: nanoservice.WireTime, Service: random.Exponential(event.Microsecond), Utilisation: 0.8, Requests: 1_000_000,
		Machine: machine(nanoservice.Dispatch{Policy: nanoservice.JBSQ, N: 2}),
	}
	var trees, loads report.Samples
	for round := range o.Rounds {
		o.Log("simulators: round %d of %d", round+1, o.Rounds)
		start, messages := time.Now(), uint64(0)
		for time.Since(start) < time.Second {
			r, err := tree.Run(ctx, 1)
			if err != nil {
				return nil, err
			}
			messages += r.Messages
		}
		trees = append(trees, float64(messages)/time.Since(start).Seconds())
		start = time.Now()
		if _, err := load.Run(ctx, 1); err != nil {
			return nil, err
		}
		loads = append(loads, 2*1.1*float64(load.Requests)/time.Since(start).Seconds()) // requests and replies; a tenth more is not counted
	}
	return []report.Result{
		report.Compare("tree_messages", "1/s", report.Higher, sourceOneCore, trees, nil),
		report.Compare("load_messages", "1/s", report.Higher, sourceOneCore, loads, nil),
	}, nil
}

// machine has 16 cores behind an L-NIC of 200 ns.
func machine(d nanoservice.Dispatch) nanoservice.Machine {
	return nanoservice.Machine{Cores: 16, Interface: nanoservice.LNIC(200 * event.Nanosecond), Dispatch: d}
}

// dispatchTails is the 99th percentile of requests of which one in 200 takes a hundred times as long, at a load of 80 %.
func dispatchTails(ctx context.Context, requests int) (report.Result, error) {
	p99 := func(d nanoservice.Dispatch) (report.Samples, error) {
		l := nanoservice.Load{
			Hosts: 1, Flows: 100_000, Wire: nanoservice.WireTime, Utilisation: 0.8, Requests: requests, Machine: machine(d),
			Service: random.Bimodal{Short: event.Microsecond / 2, Long: 50 * event.Microsecond, P: 0.005},
		}
		served, err := l.Run(ctx, 1)
		if err != nil {
			return nil, err
		}
		return report.Samples{float64(served.Latency.ValueAtQuantile(99)) / 1e3}, nil
	}
	jbsq, err := p99(nanoservice.Dispatch{Policy: nanoservice.JBSQ, N: 2})
	if err != nil {
		return report.Result{}, err
	}
	rss, err := p99(nanoservice.Dispatch{Policy: nanoservice.RSS})
	if err != nil {
		return report.Result{}, err
	}
	return report.Compare("jbsq2_p99_at_80%", "µs", report.Lower, sourceSimulated, jbsq, map[string]report.Samples{"rss": rss}), nil
}

// figures are a median and a 99th percentile.
type figures struct{ p50, p99 float64 }

// deepSearches are medians and 99th percentiles, in µs, of 300 searches by the simulator of the L-NIC paper's authors: by DMA, DDIO, L-NIC, and
// L-NIC with the reduce offload, in the order in which nanoservice.Experiment has them.
var deepSearches = map[int][4]figures{
	5: {{40.89, 44.65}, {38.41, 42.13}, {26.82, 29.90}, {17.78, 18.93}},
	6: {{52.19, 64.87}, {49.14, 62.07}, {36.13, 50.78}, {25.28, 33.99}},
}

// How far the medians and the 99th percentiles may be from these. At depth 6, the 99th percentiles of 300 searches differ by 10 % from one study
// to the next, as the authors' do, so there it is enough that theirs is among ours.
const (
	medianSlack = 0.02
	tailSlack   = 0.05
	studies     = 10
)

// deepTrees has the searches whose medians the authors' simulator has, too: each study with other random numbers.
func deepTrees(ctx context.Context, o measure.Options) (results []report.Result, err error) {
	var names []string
	p50, p99 := map[string]report.Samples{}, map[string]report.Samples{}
	want := map[string]figures{}
	for n := range studies {
		o.Log("simulators: searches of five and six levels, study %d of %d", n+1, studies)
		study, err := nanoservice.Experiment("figure6", uint64(n*1000))
		if err != nil {
			return nil, err
		}
		study.Trees = study.Trees[4*4:] // those of five and six levels
		outcomes, err := study.Run(ctx)
		if err != nil {
			return nil, err
		}
		for i := range outcomes {
			name := fmt.Sprintf("%s, depth %d", outcomes[i].Name, outcomes[i].Depth)
			if n == 0 {
				names, want[name] = append(names, name), deepSearches[outcomes[i].Depth][i%4]
			}
			p50[name], p99[name] = append(p50[name], outcomes[i].Percentile(50).Micros()), append(p99[name], outcomes[i].Percentile(99).Micros())
		}
	}
	for _, name := range names {
		median, tail := simulated("p50 "+name, p50[name], want[name].p50), simulated("p99 "+name, p99[name], want[name].p99)
		if !near(median.Value, want[name].p50, medianSlack) || !near(tail.Value, want[name].p99, tailSlack) && !within(tail.Spread, want[name].p99) {
			return nil, fmt.Errorf("%w: %s: p50 %.2f µs and p99 %.2f µs, want %+v", measure.ErrWrong, name, median.Value, tail.Value, want[name])
		}
		results = append(results, median, tail)
	}
	return results, nil
}

func near(x, want, slack float64) bool { return math.Abs(x/want-1) <= slack }

func within(spread [2]float64, x float64) bool { return spread[0] <= x && x <= spread[1] }

func simulated(name string, ours report.Samples, theirs float64) report.Result {
	others := map[string]report.Samples{"authors' simulator": slices.Repeat(report.Samples{theirs}, len(ours))}
	return report.Compare(name, "µs", report.Lower, sourceSimulated, ours, others)
}
