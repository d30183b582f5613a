package suite

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/bench/timeline"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/chart"
)

const (
	cheapRun  = 200 // rounds of spin
	dearRun   = 10 * cheapRun
	tolerance = 3 // points
)

// The tenants: three with equal lambdas, one with a dear one, and one with one of each.
var (
	tenants      = []sharer{{"tenant 1", measure.Workload, 1, cheapRun}, {"tenant 2", measure.Workload + 1, 2, cheapRun}, {"tenant 3", measure.Workload + 2, 3, cheapRun}}
	dear         = sharer{"another, 10 times as long", measure.Workload + 3, 2, dearRun}
	together     = sharer{"both in one namespace", measure.Workload + 4, 4, cheapRun}
	togetherDear = sharer{"", measure.Workload + 5, 4, dearRun}
)

//go:embed spin
var spin embed.FS

// runShares measures how tenants share the NIC: their numbers of requests by weight, over time, and their time where one's lambda takes
// ten times as long (NICA, figures 6a and 6b).
func runShares(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	return measureShares(ctx, s, o, 100)
}

// measureShares has phases of so many samples.
func measureShares(ctx context.Context, s *stand.Stand, o measure.Options, phase int) ([]report.Result, error) {
	files, err := fs.Sub(spin, "spin")
	if err != nil {
		return nil, err
	}
	a, err := compiler.BuildFS(ctx, files, compiler.Options{})
	if err != nil {
		return nil, err
	}
	for _, who := range append([]sharer{dear, together, togetherDear}, tenants...) {
		d := stand.Deployment(a, who.workload, nil)
		d.NamespaceID = who.namespace
		if err := s.NIC.Deploy(ctx, d); err != nil {
			return nil, err
		}
	}
	g, err := gen.New(s.Fast, gen.Options{ByWorkload: true})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	m := sharesMeasured{s: s, g: g, phase: phase}
	for round := range o.Rounds {
		o.Log("shares: round %d of %d", round+1, o.Rounds)
		if err := m.round(ctx); err != nil {
			return nil, err
		}
	}
	return m.results(), o.Plot("shares.svg", m.draw)
}

// sharesMeasured are the samples of all rounds, and the plots of the last one.
type sharesMeasured struct {
	s     *stand.Stand
	g     *gen.Generator
	phase int

	weighted, left, settling, jain, alone, all, dear, together, dearAll report.Samples
	byRequests, byTime                                                  *timeline.Timeline
}

func (m *sharesMeasured) round(ctx context.Context) (err error) {
	equal := timeline.Weights{1: 1, 2: 1, 3: 1}
	weighted := timeline.Weights{1: 40, 2: 40, 3: 20}
	three := []float64{0.4, 0.4, 0.2}
	m.byRequests, err = follow(ctx, m.s, m.g, tenants, m.phase, []phase{
		{tenants[:1], equal}, {tenants[:2], equal}, {tenants, equal}, {tenants, weighted}, {tenants[:2], weighted},
	})
	if err != nil {
		return err
	}
	t := m.byRequests
	m.alone = append(m.alone, timeline.Sum(t.Rates(0)))
	m.jain = append(m.jain, timeline.Jain(t.Rates(2)))
	m.all = append(m.all, timeline.Sum(t.Rates(3)))
	m.weighted = append(m.weighted, timeline.Deviation(t.Rates(3), three))
	m.left = append(m.left, timeline.Deviation(t.Rates(4), []float64{0.5, 0.5, 0}))
	m.settling = append(m.settling, t.Settling(4, []float64{0.5, 0.5, 0}))
	two := timeline.Weights{1: 1, 2: 1, 4: 1}
	m.byTime, err = follow(ctx, m.s, m.g, []sharer{tenants[0], dear, together, togetherDear}, m.phase, []phase{
		{tenants[:1], two}, {[]sharer{dear}, two}, {[]sharer{together, togetherDear}, two}, {[]sharer{tenants[0], dear}, two},
	})
	if err != nil {
		return err
	}
	one, other, inOne, both := m.byTime.Rates(0)[0], m.byTime.Rates(1)[1], m.byTime.Rates(2), m.byTime.Rates(3)
	alone, half := []float64{one, other}, []float64{0.5, 0.5}
	parts := timeline.Parts(both[:2], alone)
	m.dear = append(m.dear, timeline.Deviation(parts, half))
	m.together = append(m.together, timeline.Deviation(timeline.Parts(inOne[2:], alone), half))
	m.dearAll = append(m.dearAll, 100*timeline.Sum(parts))
	return nil
}

func (m *sharesMeasured) results() []report.Result {
	return []report.Result{
		report.Compare("off_40_40_20", "points", report.Lower, measure.SourceOpen, m.weighted, report.Goal(tolerance)),
		report.Compare("off_50_50_when_one_left", "points", report.Lower, measure.SourceOpen, m.left, report.Goal(tolerance)),
		report.Compare("settled_when_one_left", "ms", report.Lower, measure.SourceOpen, m.settling, report.Goal(200)),
		report.Compare("jain_of_equal", "", report.Higher, measure.SourceOpen, m.jain, report.Goal(0.99)),
		report.Compare("three_together", "1/s", report.Higher, measure.SourceOpen, m.all, map[string]report.Samples{"one alone": m.alone}),
		report.Compare("off_equal_time", "points", report.Lower, measure.SourceOpen, m.dear, report.Goal(5)),
		report.Compare("off_equal_time_in_one_namespace", "points", report.Lower, measure.SourceOpen, m.together, report.Goal(5)),
		report.Compare("parts_of_alone", "%", report.Higher, measure.SourceOpen, m.dearAll, report.Goal(95)),
	}
}

// draw draws the last round.
func (m *sharesMeasured) draw(w io.Writer) error {
	return chart.Draw(w,
		m.byRequests.Chart("Weights 1:1:1, then 40:40:20"),
		m.byTime.Chart(fmt.Sprintf("One lambda takes %d times as long", dearRun/cheapRun)))
}
