package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/cpu"
	"github.com/lambdanic/lambdanic/bench/echo"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/queue"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/bench/xsk"
)

// A queueWay is a way from a request to its answer. Requests are received in soft interrupts on measure.ClientCPU.
type queueWay struct {
	name   string
	attach func(p *link.Pair) (a link.Attachment, answers cpu.Sum, err error) // answers is the time of the thread that answers
}

// queueWays begins with that of the product.
func queueWays() []queueWay {
	return []queueWay{
		{"straight", attachEcho},
		{"queue on the same CPU", attachQueue(measure.ClientCPU)},
		{"queue on another CPU", attachQueue(measure.ServerCPU())},
		{"AF_XDP", attachXSK(false)},
		{"AF_XDP, spinning", attachXSK(true)},
	}
}

func attachEcho(p *link.Pair) (link.Attachment, cpu.Sum, error) {
	a, err := echo.Attach(p)
	return a, nil, err
}

// attachQueue has a thread answer that runs as soon as there is something to do, the best that a queue can have.
func attachQueue(on int) func(*link.Pair) (link.Attachment, cpu.Sum, error) {
	return func(p *link.Pair) (link.Attachment, cpu.Sum, error) {
		q, err := queue.Attach(p, on)
		if err != nil {
			return nil, nil, err
		}
		return first(q, q.PID, cpu.Process(q.PID))
	}
}

// attachXSK has a thread of this process answer on another CPU. One that spins would keep everything else from that CPU if it were first.
func attachXSK(spin bool) func(*link.Pair) (link.Attachment, cpu.Sum, error) {
	return func(p *link.Pair) (link.Attachment, cpu.Sum, error) {
		e, err := xsk.Attach(p, measure.ServerCPU(), spin)
		if err != nil {
			return nil, nil, err
		}
		if spin {
			return e, cpu.Sum{cpu.Thread(e.TID)}, nil
		}
		return first(e, e.TID, cpu.Thread(e.TID))
	}
}

// first puts the thread that answers before others.
func first(a link.Attachment, tid int, c cpu.Clock) (link.Attachment, cpu.Sum, error) {
	if err := measure.PutFirst(tid); err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	return a, cpu.Sum{c}, nil
}

// queueFigures are the samples of one way.
type queueFigures struct {
	p50, p99, cpu, loss, rate report.Samples
	known                     float64 // sustained requests per second
}

// runQueue compares the ways, in rounds, each of which visits the ways in the reverse order of the last.
func runQueue(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	ways := queueWays()
	figures := make([]queueFigures, len(ways))
	for round := range o.Rounds {
		o.Log("queue: round %d of %d", round+1, o.Rounds)
		for i := range ways {
			if round%2 == 1 {
				i = len(ways) - 1 - i
			}
			if err := figures[i].sample(ctx, s, ways[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", ways[i].name, err)
			}
		}
	}
	return queueResults(ways, figures), nil
}

// queueLoad is requests without a payload, from one CPU.
var queueLoad = gen.Load{Requests: []gen.Request{{Header: api.Header{Workload: measure.Workload}}}, Batch: replyBatch, Duration: 200 * time.Millisecond}

// sample takes one sample of each figure.
func (f *queueFigures) sample(ctx context.Context, s *stand.Stand, w queueWay) error {
	asking, err := costOfAsking(ctx, s, queueLoad)
	if err != nil {
		return err
	}
	a, answers, err := w.attach(s.Fast)
	if err != nil {
		return err
	}
	err = f.unloaded(ctx, s)
	if err == nil {
		err = generating(s.Fast, func(g *gen.Generator) error { return errors.Join(f.flooded(ctx, g, answers, asking), f.loaded(ctx, g)) })
	}
	return errors.Join(err, a.Close())
}

// unloaded takes the time of one request after the other.
func (f *queueFigures) unloaded(ctx context.Context, s *stand.Stand) error {
	text := []byte("as it came")
	l, err := measure.CallFor(ctx, s.NIC.Addr().String(), []measure.Call{{Body: text, Want: text}}, 400*time.Millisecond, measure.ClientCPU)
	f.p50, f.p99 = append(f.p50, l.Micros(50)), append(f.p99, l.Micros(99))
	return err
}

// flooded measures what a request costs: on the CPU that generates, by request, without what asking costs; and behind the queue, by answer.
func (f *queueFigures) flooded(ctx context.Context, g *gen.Generator, answers cpu.Sum, asking float64) error {
	soft, err := cpu.SoftInterrupts()
	if err != nil {
		return err
	}
	var flood gen.Result
	behind, err := cpu.PerRequest(append(soft, answers...), func() (uint64, error) {
		flood, err = g.Run(ctx, queueLoad)
		return flood.Delivered, err
	})
	if err != nil {
		return err
	}
	f.cpu = append(f.cpu, float64(flood.CPU)/float64(max(flood.Sent, 1))-asking+float64(behind))
	f.loss = append(f.loss, 100*flood.Loss())
	return nil
}

// loaded searches for the highest rate.
func (f *queueFigures) loaded(ctx context.Context, g *gen.Generator) error {
	c, err := gen.Refine(ctx, func(ctx context.Context, rate float64) (gen.Result, error) {
		l := queueLoad
		l.Rate = rate
		return g.Run(ctx, l)
	}, f.known)
	f.known = c.Open.OfferedRate()
	f.rate = append(f.rate, c.Open.Rate())
	return err
}

const sourceQueue = "as much as one CPU generates; scheduler's account of the generating thread, by request, without what asking costs, and of the thread that answers, by answer"

func queueResults(ways []queueWay, figures []queueFigures) (rs []report.Result) {
	for _, f := range []struct {
		name, unit string
		better     report.Better
		source     string
		of         func(queueFigures) report.Samples
	}{
		{"p50", "µs", report.Lower, measure.SourceClosed, func(f queueFigures) report.Samples { return f.p50 }},
		{"p99", "µs", report.Lower, measure.SourceClosed, func(f queueFigures) report.Samples { return f.p99 }},
		{"cpu_per_request", "ns", report.Lower, sourceQueue, func(f queueFigures) report.Samples { return f.cpu }},
		{"loss_when_flooded", "%", report.Lower, sourceFlood, func(f queueFigures) report.Samples { return f.loss }},
		{"open_rps", "1/s", report.Higher, measure.SourceOpen, func(f queueFigures) report.Samples { return f.rate }},
	} {
		others := map[string]report.Samples{}
		for i, w := range ways[1:] {
			others[w.name] = f.of(figures[i+1])
		}
		rs = append(rs, report.Compare(f.name, f.unit, f.better, f.source, f.of(figures[0]), others))
	}
	return rs
}
