package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/test/impair"
)

// losses are the rates, in percent and each way, at which goodput is measured.
var losses = []int{0, 1, 5, 10}

// sourceRelayed is the source of calls through a relay, which takes CPU time itself, the same for both sides.
const sourceRelayed = "closed loop, 1 client, through a relay in user space"

// runTransport sends images, 256 KiB there and 64 KiB back, to the NIC and to a process. It measures speed and cost on a good link,
// and goodput where packets are lost.
func runTransport(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	w := measure.ImageTransformer()
	a, err := s.Build(ctx, w.Lambda)
	if err != nil {
		return nil, err
	}
	d := stand.Deployment(a, measure.Workload, nil)
	if err := s.NIC.Deploy(ctx, d); err != nil {
		return nil, err
	}
	process, err := measure.AsProcess(ctx, s, w, d, stand.Flavours[0])
	if err != nil {
		return nil, err
	}
	t := transport{work: w, sides: map[string]*measure.Side{measure.NIC: measure.OnNIC(s, w), measure.Process: process}, samples: map[string]map[string]report.Samples{}}
	for _, step := range []func(context.Context) error{t.lossy, t.good} {
		for round := range o.Rounds {
			if err == nil {
				o.Log("transport: round %d of %d", round+1, o.Rounds)
				err = step(ctx)
			}
		}
	}
	return t.results(), errors.Join(err, process.Stop(ctx))
}

// A transport collects samples, by figure and side.
type transport struct {
	work    measure.Work
	sides   map[string]*measure.Side
	samples map[string]map[string]report.Samples
}

func (t *transport) add(figure, side string, v float64) {
	if t.samples[figure] == nil {
		t.samples[figure] = map[string]report.Samples{}
	}
	t.samples[figure][side] = append(t.samples[figure][side], v)
}

// lossy measures goodput.
func (t *transport) lossy(ctx context.Context) error {
	for name, s := range t.sides {
		for _, loss := range losses {
			v, err := t.goodput(ctx, s, loss)
			if err != nil {
				return fmt.Errorf("%s with %d %% loss: %w", name, loss, err)
			}
			t.add(fmt.Sprintf("goodput_loss_%d%%", loss), name, v)
		}
	}
	return nil
}

// good measures throughput and cost where nothing is lost.
func (t *transport) good(ctx context.Context) error {
	for name, s := range t.sides {
		l, err := s.Latency(ctx)
		if err != nil {
			return err
		}
		t.add("throughput", name, t.megabytes(l))
		each, err := s.CPUTime(ctx)
		if err != nil {
			return err
		}
		t.add("server_cpu", name, float64(each.Microseconds()))
	}
	return nil
}

// megabytes is how many megabytes of messages, both ways, pass in a second.
func (t *transport) megabytes(l measure.Latency) float64 {
	c := t.work.Calls[0]
	return l.Rate() * float64(len(c.Body)+len(c.Want)) / 1e6
}

func (t *transport) goodput(ctx context.Context, s *measure.Side, percent int) (float64, error) {
	to, err := netip.ParseAddrPort(s.Addr)
	if err != nil {
		return 0, err
	}
	f := impair.Faults{Seed: 1, Drop: float64(percent) / 100}
	down := f
	down.Seed++
	r, err := impair.Start(impair.Config{Listen: "127.0.0.1:0", Server: to, Up: f, Down: down})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	l, err := measure.CallFor(ctx, r.Addr().String(), t.work.Calls, t.work.Duration, measure.ClientCPU)
	return t.megabytes(l), err
}

func (t *transport) results() (all []report.Result) {
	add := func(name, unit string, better report.Better, source string) {
		of := t.samples[name]
		all = append(all, report.Compare(name, unit, better, source, of[measure.NIC], map[string]report.Samples{measure.Process: of[measure.Process]}))
	}
	add("throughput", "MB/s", report.Higher, measure.SourceClosed)
	add("server_cpu", "µs/call", report.Lower, measure.SourceCPU)
	for _, loss := range losses {
		add(fmt.Sprintf("goodput_loss_%d%%", loss), "MB/s", report.Higher, sourceRelayed)
	}
	return all
}
