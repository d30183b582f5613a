// Package measure has the means of all suites: works and the sides that they run on, closed and open loops, rounds.
package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// Options of a run.
type Options struct {
	stand.Config
	Rounds    int       // alternating runs, of which medians are taken
	Seed      uint64    // of the first random program
	Benchmark string    // of the suite, "" for all
	Plots     string    // the directory into which suites draw, "" for none
	Progress  io.Writer // is told what is being done; may be nil
}

// Log says what is being done.
func (o Options) Log(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format+"\n", args...)
	}
}

// Plot writes a plot of that name into the directory of plots, if there is one.
func (o Options) Plot(name string, draw func(io.Writer) error) error {
	if o.Plots == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(o.Plots, name))
	if err != nil {
		return fmt.Errorf("draw a plot: %w", err)
	}
	return errors.Join(draw(f), f.Close())
}

// A Suite measures one thing.
type Suite struct {
	Name       string
	About      string
	Benchmarks []string // that NAME/BENCHMARK runs alone
	Run        func(ctx context.Context, s *stand.Stand, o Options) ([]report.Result, error)
}

// ErrUnknown says that no suite has this name.
var ErrUnknown = errors.New("no such suite")

// find gives the suite of a name, NAME or NAME/BENCHMARK, and that benchmark. The error is ErrUnknown, and lists the names.
func find(suites []Suite, name string) (s Suite, benchmark string, err error) {
	suite, benchmark, partial := strings.Cut(name, "/")
	i := slices.IndexFunc(suites, func(s Suite) bool { return s.Name == suite && (!partial || slices.Contains(s.Benchmarks, benchmark)) })
	if i < 0 {
		return s, "", fmt.Errorf("%w %q: choose from %s", ErrUnknown, name, strings.Join(Names(suites), ", "))
	}
	return suites[i], benchmark, nil
}

// Check checks that all names are of suites, before the first suite runs. The error is ErrUnknown.
func Check(suites []Suite, names []string) error {
	for _, name := range names {
		if _, _, err := find(suites, name); err != nil {
			return err
		}
	}
	return nil
}

// Run runs the suite of a name, NAME or NAME/BENCHMARK, on a stand of its own. The error is ErrUnknown if no suite has the name.
func Run(ctx context.Context, suites []Suite, name string, o Options) (out report.Suite, err error) {
	suite, benchmark, err := find(suites, name)
	if err != nil {
		return out, err
	}
	o.Benchmark = benchmark
	s, err := stand.New(ctx, o.Config)
	if err != nil {
		return out, err
	}
	defer func() {
		if closed := s.Close(); err == nil {
			err = closed
		}
	}()
	out = report.Suite{Suite: name, Machine: report.ThisMachine("veth")}
	out.Results, err = suite.Run(ctx, s, o)
	return out, err
}

// Names are the names of the suites and of their benchmarks.
func Names(suites []Suite) (all []string) {
	for _, s := range suites {
		all = append(all, s.Name)
		for _, benchmark := range s.Benchmarks {
			all = append(all, s.Name+"/"+benchmark)
		}
	}
	return all
}
