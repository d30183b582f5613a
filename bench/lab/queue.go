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

// A queueWay is a way from a request to its answer.
type queueWay struct {
	name   string
	attach func(p *link.Pair, on int) (link.Attachment, cpu.Sum, error)
	// The CPUs that answer one client, whose packets are received on its own; that answer under load; and that receive under load.
	unloaded, loaded, receives int
}

// queueWays begins with that of the product.
func queueWays() []queueWay {
	client, server := measure.ClientCPU, measure.ServerCPU()
	return []queueWay{
		{name: "straight", attach: attachEcho, receives: server},
		{"queue on the same CPU", attachQueue, client, server, server},
		{"queue on another CPU", attachQueue, server, server, client},
		{"AF_XDP", attachXSK(false), server, server, client},
		{"AF_XDP, spinning", attachXSK(true), server, server, client},
	}
}

func attachEcho(p *link.Pair, _ int) (link.Attachment, cpu.Sum, error) {
	a, err := echo.Attach(p)
	return a, nil, err
}

func attachQueue(p *link.Pair, on int) (link.Attachment, cpu.Sum, error) {
	q, err := queue.Attach(p, on)
	if err != nil {
		return nil, nil, err
	}
	return q, q.Thread, nil
}

func attachXSK(spin bool) func(*link.Pair, int) (link.Attachment, cpu.Sum, error) {
	return func(p *link.Pair, on int) (link.Attachment, cpu.Sum, error) {
		e, err := xsk.Attach(p, on, spin)
		if err != nil {
			return nil, nil, err
		}
		return e, cpu.Sum{e.Thread}, nil
	}
}

// queueRates are the rates, in requests per second, at which CPU time is compared.
var queueRates = [...]float64{50_000, 250_000}

// queueFigures are the samples of one way.
type queueFigures struct {
	p50, p99, rate report.Samples
	cpu            [len(queueRates)]report.Samples
	known          float64 // sustained requests per second
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
			if err := errors.Join(figures[i].unloaded(ctx, s, ways[i]), figures[i].loaded(ctx, s, ways[i])); err != nil {
				return nil, fmt.Errorf("%s: %w", ways[i].name, err)
			}
		}
	}
	return queueResults(ways, figures), nil
}

// unloaded takes the time of one request after the other.
func (f *queueFigures) unloaded(ctx context.Context, s *stand.Stand, w queueWay) error {
	a, _, err := w.attach(s.Fast, w.unloaded)
	if err != nil {
		return err
	}
	text := []byte("as it came")
	l, err := measure.CallFor(ctx, s.NIC.Addr().String(), []measure.Call{{Body: text, Want: text}}, 400*time.Millisecond, measure.ClientCPU)
	f.p50, f.p99 = append(f.p50, l.Micros(50)), append(f.p99, l.Micros(99))
	return errors.Join(err, a.Close())
}

// loaded offers loads to an end that receives in threads, whose time can be told from the generator's.
func (f *queueFigures) loaded(ctx context.Context, s *stand.Stand, w queueWay) error {
	a, thread, err := w.attach(s.Fast, w.loaded)
	if err != nil {
		return err
	}
	err = generating(s.Fast, func(g *gen.Generator) error {
		stop, err := measure.ReceiveOn(s.Fast, measure.ClientCPU, w.receives)
		if err != nil {
			return err
		}
		return errors.Join(f.sample(ctx, s, thread, g), stop())
	})
	return errors.Join(err, a.Close())
}

func (f *queueFigures) sample(ctx context.Context, s *stand.Stand, thread cpu.Sum, g *gen.Generator) error {
	run := func(ctx context.Context, rate float64) (gen.Result, error) {
		return g.Run(ctx, gen.Load{Requests: []gen.Request{{Header: api.Header{Workload: measure.Workload}}}, Rate: rate})
	}
	receiving, err := cpu.NAPI(s.Fast.Peer.Name)
	if err != nil {
		return err
	}
	for i, rate := range queueRates {
		each, err := cpu.PerRequest(append(receiving, thread...), func() (uint64, error) {
			r, err := run(ctx, rate)
			return r.Delivered, err
		})
		if err != nil {
			return err
		}
		f.cpu[i] = append(f.cpu[i], float64(each.Nanoseconds()))
	}
	c, err := gen.Refine(ctx, run, f.known)
	f.known = c.Open.OfferedRate()
	f.rate = append(f.rate, c.Open.Rate())
	return err
}

const sourceThreads = "scheduler's account of the threads that receive, and of that which answers"

func queueResults(ways []queueWay, figures []queueFigures) (rs []report.Result) {
	add := func(name, unit string, better report.Better, source string, of func(queueFigures) report.Samples) {
		others := map[string]report.Samples{}
		for i, w := range ways[1:] {
			others[w.name] = of(figures[i+1])
		}
		rs = append(rs, report.Compare(name, unit, better, source, of(figures[0]), others))
	}
	add("p50", "µs", report.Lower, measure.SourceClosed, func(f queueFigures) report.Samples { return f.p50 })
	add("p99", "µs", report.Lower, measure.SourceClosed, func(f queueFigures) report.Samples { return f.p99 })
	add("open_rps", "1/s", report.Higher, measure.SourceOpen, func(f queueFigures) report.Samples { return f.rate })
	for i, rate := range queueRates {
		add(fmt.Sprintf("cpu_per_request_at_%.0fk", rate/1e3), "ns", report.Lower, sourceThreads, func(f queueFigures) report.Samples { return f.cpu[i] })
	}
	return rs
}
