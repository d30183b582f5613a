package measure

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/lambdanic/lambdanic/bench/cpu"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/stand"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// cpuRate is the load, in requests per second, at which CPU time is compared. Every side sustains it.
const cpuRate = 50_000

// A Side is a place where a lambda runs while it is measured.
type Side struct {
	Addr string // where the lambda is called
	Stop func(context.Context) error

	work Work
	pair *link.Pair
	// clock reads the CPU time of the side's server, once the pair receives in threads.
	clock func() (cpu.Clock, error)
	// far gives the measured end the program that it needs under generated load; nil where the end has a program.
	far func() (link.Attachment, error)
	pid int // of the server, where it is a process
}

// OnNIC is the side of a lambda that the NIC program runs. It stays deployed.
func OnNIC(s *stand.Stand, w Work) *Side {
	return &Side{
		work: w, pair: s.Fast, Addr: s.NIC.Addr().String(),
		clock: func() (cpu.Clock, error) { return cpu.NAPI(s.Fast.Peer.Name) },
		Stop:  func(context.Context) error { return nil },
	}
}

// AsProcess starts a process for the side.
func AsProcess(ctx context.Context, s *stand.Stand, w Work, d backend.Deployment, f stand.Flavour) (*Side, error) {
	p, err := s.StartProcess(ctx, d, f)
	if err != nil {
		return nil, err
	}
	clock := func() (cpu.Clock, error) {
		napi, err := cpu.NAPI(s.Plain.Peer.Name)
		return append(napi, cpu.Process(p.PID)), err
	}
	return &Side{
		work: w, pair: s.Plain, Addr: p.Addr.String(), clock: clock, far: s.Plain.PassPeer, Stop: p.Stop, pid: p.PID,
	}, nil
}

// Latency is measured without programs that the side does not need.
func (s *Side) Latency(ctx context.Context, opts ...lambdanic.Option) (l Latency, err error) {
	if s.pid != 0 {
		if err := PinProcess(s.pid, ServerCPU()); err != nil {
			return l, err
		}
		all := GeneratorCPUs()
		defer func() { err = errors.Join(err, PinProcess(s.pid, all[len(all)-1]...)) }()
	}
	return CallFor(ctx, s.Addr, s.work.Calls, s.work.Duration, ClientCPU, opts...)
}

// underLoad attaches the generator while f runs.
func (s *Side) underLoad(f func(g *gen.Generator) error) (err error) {
	if s.far != nil {
		far, err := s.far()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, far.Close()) }()
	}
	g, err := gen.New(s.pair, gen.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return f(g)
}

// openRate finds the highest delivered rate with tolerable loss, near a known one if that is not 0.
func (s *Side) openRate(ctx context.Context, cpus []int, known float64) (rate float64, err error) {
	err = s.underLoad(func(g *gen.Generator) error {
		run := func(ctx context.Context, rate float64) (gen.Result, error) {
			if ceiling := s.work.Ceiling; ceiling > 0 && (rate == 0 || rate > ceiling) {
				rate = ceiling
			}
			l := *s.work.Open
			l.Rate, l.CPUs, l.Duration = rate, cpus, 200*time.Millisecond
			return g.Run(ctx, l)
		}
		c, err := gen.Refine(ctx, run, known)
		rate = c.Open.Rate()
		return err
	})
	return rate, err
}

// CPUTime measures the server's CPU time per request, with receive work in threads.
func (s *Side) CPUTime(ctx context.Context) (each time.Duration, err error) {
	err = s.underLoad(func(g *gen.Generator) (err error) {
		if err := s.pair.SetThreaded(true); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.pair.SetThreaded(false)) }()
		clock, err := s.clock()
		if err != nil {
			return err
		}
		load := func() (uint64, error) { return s.steadyLoad(ctx, g) }
		if s.work.Open == nil {
			load = func() (uint64, error) { return s.oneClient(ctx) }
		}
		each, err = cpu.PerRequest(clock, load)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("CPU time of %s: %w", s.work.Lambda, err)
	}
	return each, nil
}

// steadyLoad offers a rate that every side sustains.
func (s *Side) steadyLoad(ctx context.Context, g *gen.Generator) (answered uint64, err error) {
	l := *s.work.Open
	l.Rate, l.Duration = cpuRate, s.work.Duration
	r, err := g.Run(ctx, l)
	return r.Delivered, err
}

// oneClient calls in a closed loop. The receive threads keep to the sender's CPU, where the soft interrupts that they replace would
// have run. Left alone, they are in some runs woken packet by packet on another CPU.
func (s *Side) oneClient(ctx context.Context) (answered uint64, err error) {
	here := func(tid int) error { return pin(tid, ClientCPU) }
	if err := errors.Join(eachReceiver(s.pair.Host, here), eachReceiver(s.pair.Peer, here)); err != nil {
		return 0, err
	}
	l, err := s.Latency(ctx)
	if err != nil {
		return 0, err
	}
	return uint64(l.Histogram.TotalCount()), nil
}

// services starts the services that the work calls.
func (w Work) services(ctx context.Context, s *stand.Stand) (fast, plain map[string]netip.AddrPort, stop func() error, err error) {
	if w.Services == nil {
		return nil, nil, func() error { return nil }, nil
	}
	return w.Services(ctx, s)
}
