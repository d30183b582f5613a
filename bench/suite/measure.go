package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// The sides.
const (
	NIC      = "nic"
	Process  = "process"          // blocking
	Spinning = "process_spinning" // waiting for packets on a CPU of its own
)

// Figures are one side's samples, one of each per round.
type Figures struct {
	P50, P99, P999 report.Samples // µs
	P50Spinning    report.Samples // µs, seen by a client that never sleeps
	ClosedRate     report.Samples // calls per second of a client on each CPU
	OpenRate       report.Samples // delivered per second; none where the work has no open load
	CPU            report.Samples // ns per request
	Histogram      *hdrhistogram.Histogram
}

// Measurement is one work on all sides.
type Measurement struct {
	Work  Work
	Sides map[string]*Figures
}

// openSetup is a way to be offered load: who serves, and which CPUs generate.
type openSetup struct {
	flavour stand.Flavour
	cpus    []int
	rate    float64 // that it was found to sustain
}

// measurer holds what the rounds of one measurement share.
type measurer struct {
	stand *stand.Stand
	work  Work
	plain backend.Deployment
	best  map[string]openSetup
	m     *Measurement
}

// Measure runs the work on every side, in rounds, each of which visits the sides in the reverse order of the last.
func Measure(ctx context.Context, s *stand.Stand, a *compiler.Artifact, w Work, rounds int, log func(format string, args ...any)) (*Measurement, error) {
	fast, plain, stop, err := w.services(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stop() }()
	if err := s.NIC.Deploy(ctx, stand.Deployment(a, workload, fast)); err != nil {
		return nil, err
	}
	defer func() { _ = s.NIC.Remove(ctx, workload) }()
	m := &measurer{
		stand: s, work: w, plain: stand.Deployment(a, workload, plain), best: map[string]openSetup{},
		m: &Measurement{Work: w, Sides: map[string]*Figures{}},
	}
	order := []string{NIC, Process, Spinning}
	for _, name := range order {
		m.m.Sides[name] = &Figures{Histogram: newHistogram()}
		if err := m.findBest(ctx, name); err != nil {
			return nil, fmt.Errorf("%s on %s: %w", w.Lambda, name, err)
		}
	}
	for round := range rounds {
		log("%s: round %d of %d", w.Lambda, round+1, rounds)
		for i := range order {
			name := order[i]
			if round%2 == 1 {
				name = order[len(order)-1-i]
			}
			what := w.Lambda + " on " + name
			if err := repeat(what, log, func() error { return m.round(ctx, name) }); err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	return m.m, nil
}

func (m *measurer) start(ctx context.Context, name string, f stand.Flavour) (*side, error) {
	if name == NIC {
		return onNIC(m.stand, m.work), nil
	}
	return asProcess(ctx, m.stand, m.work, m.plain, f)
}

// with runs f on a side that is there for as long.
func (m *measurer) with(ctx context.Context, name string, fl stand.Flavour, f func(*side) error) error {
	s, err := m.start(ctx, name, fl)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.stop(ctx))
}

// findBest searches for the way in which a side sustains the highest open rate.
func (m *measurer) findBest(ctx context.Context, name string) error {
	if m.work.Open == nil {
		return nil
	}
	for _, f := range flavours(name) {
		for _, cpus := range generatorCPUs() {
			err := m.with(ctx, name, f, func(s *side) error {
				rate, err := s.openRate(ctx, cpus, 0)
				if rate > m.best[name].rate {
					m.best[name] = openSetup{f, cpus, rate}
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// repeat begins a round again that a busy machine broke off, at most twice: somebody was not answered in time.
func repeat(what string, log func(format string, args ...any), round func() error) error {
	for left := 2; ; left-- {
		err := round()
		if left == 0 || !errors.Is(err, lambdanic.ErrServiceTimeout) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		log("%s: %v: is the machine busy? Once more", what, err)
	}
}

// round takes one sample of each figure, or none where it fails.
func (m *measurer) round(ctx context.Context, name string) (err error) {
	f := m.m.Sides[name]
	var times []*hdrhistogram.Histogram
	defer func(was Figures) {
		if err != nil {
			*f = was
			return
		}
		for _, t := range times {
			f.Histogram.Merge(t)
		}
	}(*f)
	err = m.with(ctx, name, flavours(name)[0], func(s *side) error {
		l, err := s.latency(ctx)
		if err != nil {
			return err
		}
		f.P50, f.P99, f.P999 = append(f.P50, l.Micros(50)), append(f.P99, l.Micros(99)), append(f.P999, l.Micros(99.9))
		times = append(times, l.Histogram)
		if l, err = s.latency(ctx, lambdanic.WithSpin()); err != nil {
			return err
		}
		f.P50Spinning = append(f.P50Spinning, l.Micros(50))
		rate, err := s.closedRate(ctx)
		if err != nil {
			return err
		}
		f.ClosedRate = append(f.ClosedRate, rate)
		each, err := s.cpuTime(ctx)
		f.CPU = append(f.CPU, float64(each.Nanoseconds()))
		return err
	})
	best := m.best[name]
	if err != nil || best.rate == 0 {
		return err
	}
	return m.with(ctx, name, best.flavour, func(s *side) error {
		rate, err := s.openRate(ctx, best.cpus, best.rate)
		f.OpenRate = append(f.OpenRate, rate)
		return err
	})
}
