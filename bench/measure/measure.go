package measure

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

// Where figures come from.
const (
	SourceOpen   = "open loop from BPF_PROG_TEST_RUN live frames; replies counted where they arrive"
	SourceClosed = "closed loop of one client; every answer checked"
	SourceCPU    = "scheduler's account of receive threads and server process"
)

// Figures are one side's samples, one of each per round.
type Figures struct {
	P50, P99, P999 report.Samples // µs
	P50Spinning    report.Samples // µs, seen by a client that never sleeps
	ClosedRate     report.Samples // calls per second of a client on each CPU
	OpenRate       report.Samples // delivered per second; empty where the work has no open load
	CPU            report.Samples // ns per request
	Histogram      *hdrhistogram.Histogram
}

// Measurement has the figures of one work on all sides.
type Measurement struct {
	Work  Work
	Sides map[string]*Figures
}

// openSetup is a set-up under load: which process serves, and which CPUs generate.
type openSetup struct {
	flavour stand.Flavour
	cpus    []int
	rate    float64 // the rate that it sustains
}

// measurer holds what the rounds of one measurement share.
type measurer struct {
	stand *stand.Stand
	work  Work
	plain backend.Deployment
	best  map[string]openSetup
	m     *Measurement
}

// Compare runs the work on every side, in rounds, each of which visits the sides in the reverse order of the last.
func Compare(ctx context.Context, s *stand.Stand, a *compiler.Artifact, w Work, rounds int, log func(format string, args ...any)) (*Measurement, error) {
	fast, plain, stop, err := w.services(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stop() }()
	if err := s.NIC.Deploy(ctx, stand.Deployment(a, Workload, fast)); err != nil {
		return nil, err
	}
	defer func() { _ = s.NIC.Remove(ctx, Workload) }()
	m := &measurer{
		stand: s, work: w, plain: stand.Deployment(a, Workload, plain), best: map[string]openSetup{},
		m: &Measurement{Work: w, Sides: map[string]*Figures{}},
	}
	order := []string{NIC, Process, Spinning}
	for _, name := range order {
		m.m.Sides[name] = &Figures{Histogram: NewHistogram()}
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

func (m *measurer) start(ctx context.Context, name string, f stand.Flavour) (*Side, error) {
	if name == NIC {
		return OnNIC(m.stand, m.work), nil
	}
	return AsProcess(ctx, m.stand, m.work, m.plain, f)
}

// with runs f on a side that exists while f runs.
func (m *measurer) with(ctx context.Context, name string, fl stand.Flavour, f func(*Side) error) error {
	s, err := m.start(ctx, name, fl)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Stop(ctx))
}

// findBest searches for the way in which a side sustains the highest open rate.
func (m *measurer) findBest(ctx context.Context, name string) error {
	if m.work.Open == nil {
		return nil
	}
	for _, f := range flavours(name) {
		for _, cpus := range GeneratorCPUs() {
			err := m.with(ctx, name, f, func(s *Side) error {
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

// repeat repeats, at most twice, a round that failed because a busy machine did not answer in time.
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
	err = m.with(ctx, name, flavours(name)[0], func(s *Side) error {
		l, err := s.Latency(ctx)
		if err != nil {
			return err
		}
		f.P50, f.P99, f.P999 = append(f.P50, l.Micros(50)), append(f.P99, l.Micros(99)), append(f.P999, l.Micros(99.9))
		times = append(times, l.Histogram)
		if l, err = s.Latency(ctx, lambdanic.WithSpin()); err != nil {
			return err
		}
		f.P50Spinning = append(f.P50Spinning, l.Micros(50))
		rate, err := s.closedRate(ctx)
		if err != nil {
			return err
		}
		f.ClosedRate = append(f.ClosedRate, rate)
		each, err := s.CPUTime(ctx)
		f.CPU = append(f.CPU, float64(each.Nanoseconds()))
		return err
	})
	best := m.best[name]
	if err != nil || best.rate == 0 {
		return err
	}
	return m.with(ctx, name, best.flavour, func(s *Side) error {
		rate, err := s.openRate(ctx, best.cpus, best.rate)
		f.OpenRate = append(f.OpenRate, rate)
		return err
	})
}

// flavours are the ways in which a side is run; the first is the one whose latency is measured.
func flavours(side string) (fs []stand.Flavour) {
	if side == NIC {
		return []stand.Flavour{{Name: NIC}}
	}
	for _, f := range stand.Flavours {
		if f.Spin == (side == Spinning) {
			fs = append(fs, f)
		}
	}
	return fs
}

// Results are the figures of the NIC against those of the others.
func (m *Measurement) Results() (rs []report.Result) {
	for _, f := range []struct {
		name, unit string
		better     report.Better
		source     string
		of         func(*Figures) report.Samples
	}{
		{"p50", "µs", report.Lower, SourceClosed, func(f *Figures) report.Samples { return f.P50 }},
		{"p99", "µs", report.Lower, SourceClosed, func(f *Figures) report.Samples { return f.P99 }},
		{"p99.9", "µs", report.Lower, SourceClosed, func(f *Figures) report.Samples { return f.P999 }},
		{"p50_spinning_client", "µs", report.Lower, SourceClosed, func(f *Figures) report.Samples { return f.P50Spinning }},
		{"closed_rps", "1/s", report.Higher, SourceClosed, func(f *Figures) report.Samples { return f.ClosedRate }},
		{"open_rps", "1/s", report.Higher, SourceOpen, func(f *Figures) report.Samples { return f.OpenRate }},
		{"cpu_per_request", "ns", report.Lower, SourceCPU, func(f *Figures) report.Samples { return f.CPU }},
	} {
		if len(f.of(m.Sides[NIC])) == 0 {
			continue
		}
		rs = append(rs, report.Compare(m.Work.Lambda+"."+f.name, f.unit, f.better, f.source, f.of(m.Sides[NIC]), map[string]report.Samples{
			Process: f.of(m.Sides[Process]), Spinning: f.of(m.Sides[Spinning]),
		}))
	}
	return rs
}
