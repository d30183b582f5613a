// Package demo is what `lambdanic demo` runs: it uses the product as a newcomer would, checks every answer, and measures the
// bundled lambdas in the NIC against the same lambdas as processes.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// Options of a demo.
type Options struct {
	stand.Config
	Rounds   int       // alternating runs, of which medians are taken; 0 means 5
	Out      string    // directory for demo.json and demo.svg
	Table    io.Writer // where the table goes
	Progress io.Writer // is told what is being done; may be nil
}

func (o Options) log(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format+"\n", args...)
	}
}

// ErrWrong says that a lambda gave a wrong answer. The report has been written nevertheless.
var ErrWrong = measure.ErrWrong

// works are the lambdas in the order in which they are shown.
var works = []func() measure.Work{measure.WebServer, measure.KVClient, measure.ImageTransformer}

// Run runs the demo, writes its table, its JSON and its picture, and leaves nothing else behind.
func Run(ctx context.Context, o Options) error {
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if os.Geteuid() != 0 {
		return errors.New("the demo makes interfaces and loads BPF programs: run as root")
	}
	o.log("using the product: deploy on both targets, invoke, check")
	correct, err := o.use(ctx)
	if err != nil {
		return err
	}
	r, measured, err := o.measure(ctx, correct)
	if err != nil {
		return err
	}
	if err := o.write(r, measured); err != nil {
		return err
	}
	for lambda, ok := range correct {
		if !ok {
			return fmt.Errorf("%s: %w", lambda, ErrWrong)
		}
	}
	return nil
}

// measure sets up the measuring stand and compares the sides on it. A wrong answer there ends the demo.
func (o Options) measure(ctx context.Context, correct map[string]bool) (r Report, all []*measure.Measurement, err error) {
	s, err := stand.New(ctx, o.Config)
	if err != nil {
		return r, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	machine := report.ThisMachine("veth")
	r.Environment = Environment{Kernel: machine.Kernel, CPUs: machine.CPUs, NICMode: string(s.NIC.Mode())}
	r.Lambdas = map[string]Lambda{}
	var limit report.Samples
	for _, work := range works {
		w := work()
		a, err := s.Build(ctx, w.Lambda)
		if err != nil {
			return r, nil, err
		}
		m, err := measure.Compare(ctx, s, a, w, o.Rounds, o.log)
		if err != nil {
			return r, nil, err
		}
		all = append(all, m)
		r.Lambdas[w.Lambda] = lambdaOf(m, correct[w.Lambda])
		for range max(1, o.Rounds/len(works)) + 1 { // the limit is measured in the same run, spread over it
			rate, err := measure.EchoRate(ctx, s)
			if err != nil {
				return r, nil, err
			}
			limit = append(limit, rate)
		}
	}
	r.Limit.XDPTxPPS = limit.Median()
	return r, all, nil
}

// write puts the table out and the files into their directory.
func (o Options) write(r Report, measured []*measure.Measurement) error {
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return fmt.Errorf("make directory for the report: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.Out, "demo.json"), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	picture, err := os.Create(filepath.Join(o.Out, "demo.svg"))
	if err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	if err := errors.Join(report.Latency(picture, panels(measured)), picture.Close()); err != nil {
		return err
	}
	return r.writeTable(o.Table, measured)
}

func panels(measured []*measure.Measurement) (ps []report.Panel) {
	for _, m := range measured {
		p := report.Panel{Title: m.Work.Lambda}
		for _, side := range []struct{ key, name string }{
			{measure.NIC, "NIC"}, {measure.Process, "process, blocking"}, {measure.Spinning, "process, spinning"},
		} {
			p.Curves = append(p.Curves, report.Curve{Name: side.name, Points: measure.Points(m.Sides[side.key].Histogram)})
		}
		ps = append(ps, p)
	}
	return ps
}
