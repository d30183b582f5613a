package suite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/lambdanic/lambdanic/api"
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
	room      = 64
	longest   = 1024                           // bytes of a reply
	headers   = 14 + 20 + 8 + api.RPCHeaderLen // bytes before a reply: Ethernet, IPv4, UDP, λ-RPC
)

var timeBudget = api.Budget{Time: timeline.Budget}

// The tenants: three with equal lambdas, one with a dear one, one with one of each, and three with replies of different lengths.
var (
	tenants      = []sharer{{"tenant 1", measure.Workload, 1, cheapRun}, {"tenant 2", measure.Workload + 1, 2, cheapRun}, {"tenant 3", measure.Workload + 2, 3, cheapRun}}
	dear         = sharer{"another, 10 times as long", measure.Workload + 3, 2, dearRun}
	together     = sharer{"both in one namespace", measure.Workload + 4, 4, cheapRun}
	togetherDear = sharer{"", measure.Workload + 5, 4, dearRun}
	senders      = []sharer{{"replies of 64 bytes", measure.Workload + 6, 1, 64}, {"of 1024 bytes", measure.Workload + 7, 2, longest}, {"of 256 bytes", measure.Workload + 8, 3, 256}}
)

//go:embed spin fill
var lambdas embed.FS

// runShares measures how tenants share the NIC: their numbers of requests by weight, over time, their time where one's lambda takes ten times as long
// (NICA, figures 6a and 6b), and what is sent where one's replies are longer.
func runShares(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	return measureShares(ctx, s, o, 100)
}

// measureShares has phases of so many samples.
func measureShares(ctx context.Context, s *stand.Stand, o measure.Options, phase int) ([]report.Result, error) {
	if err := errors.Join(
		deploySharers(ctx, s, "spin", append([]sharer{dear, together, togetherDear}, tenants...)),
		deploySharers(ctx, s, "fill", senders),
	); err != nil {
		return nil, err
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

// build compiles one of the lambdas.
func build(ctx context.Context, lambda string) (*compiler.Artifact, error) {
	files, err := fs.Sub(lambdas, lambda)
	if err != nil {
		return nil, err
	}
	return compiler.BuildFS(ctx, files, compiler.Options{})
}

// deploySharers gives each sharer a lambda of its own.
func deploySharers(ctx context.Context, s *stand.Stand, lambda string, sharers []sharer) error {
	a, err := build(ctx, lambda)
	if err != nil {
		return err
	}
	for _, who := range sharers {
		d := stand.Deployment(a, who.workload, nil)
		d.NamespaceID = who.namespace
		if err := s.NIC.Deploy(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// sharesMeasured are the samples of all rounds, and the plots of the last one.
type sharesMeasured struct {
	s     *stand.Stand
	g     *gen.Generator
	phase int

	answered, sent              timeline.Fairness
	dear, together, dearAll     report.Samples
	byRequests, byTime, byBytes *timeline.Timeline
}

func (m *sharesMeasured) round(ctx context.Context) error {
	for _, follow := range []func(context.Context) error{m.roundByRequests, m.roundByTime, m.roundByBytes} {
		if err := follow(ctx); err != nil {
			return err
		}
	}
	return nil
}

// coming has three sharers come one after the other, as those of caches.
func coming(all []sharer) (phases []phase) {
	for _, p := range timeline.Coming {
		phases = append(phases, phase{all[:p.Sharers], p.Weights})
	}
	return phases
}

// answers counts answers.
func answers(sharer) float64 { return 1 }

func (m *sharesMeasured) roundByRequests(ctx context.Context) (err error) {
	c := contest{sharers: tenants, budget: timeBudget, room: room, counts: answers, unit: "answered (1,000/s)", phases: coming(tenants)}
	if m.byRequests, err = c.follow(ctx, m.s, m.g, m.phase); err != nil {
		return err
	}
	m.answered.Add(m.byRequests)
	return nil
}

func (m *sharesMeasured) roundByTime(ctx context.Context) (err error) {
	halves := []float64{0.5, 0.5}
	both := []sharer{tenants[0], dear}
	inOne := []sharer{together, togetherDear}
	w := timeline.Weights{1: 1, 2: 1, 4: 1}
	c := contest{
		sharers: slices.Concat(both, inOne), budget: timeBudget, room: room, counts: answers, unit: "answered (1,000/s)",
		phases: []phase{{both[:1], w}, {both[1:], w}, {inOne, w}, {both, w}},
	}
	if m.byTime, err = c.follow(ctx, m.s, m.g, m.phase); err != nil {
		return err
	}
	t := m.byTime
	alone := []float64{t.Rates(0)[0], t.Rates(1)[1]}
	parts := timeline.Parts(t.Rates(3)[:2], alone)
	m.dear = append(m.dear, timeline.Deviation(parts, halves))
	m.together = append(m.together, timeline.Deviation(timeline.Parts(t.Rates(2)[2:], alone), halves))
	m.dearAll = append(m.dearAll, 100*timeline.Sum(parts))
	return nil
}

func (m *sharesMeasured) roundByBytes(ctx context.Context) (err error) {
	c := contest{
		sharers: senders, budget: api.Budget{Bandwidth: timeline.Bandwidth}, room: longest, unit: "sent (Mbit/s)", phases: coming(senders),
		counts: func(who sharer) float64 { return 8e-3 * float64(headers+who.method) }, // kbit
	}
	if m.byBytes, err = c.follow(ctx, m.s, m.g, m.phase); err != nil {
		return err
	}
	m.sent.Add(m.byBytes)
	return nil
}

func (m *sharesMeasured) results() []report.Result {
	return slices.Concat(m.answered.Results("", measure.SourceOpen, tolerance), []report.Result{
		report.Compare("three_together", "1/s", report.Higher, measure.SourceOpen, m.answered.Together, map[string]report.Samples{"one alone": m.answered.Alone}),
		report.Compare("off_equal_time", "points", report.Lower, measure.SourceOpen, m.dear, report.Goal(5)),
		report.Compare("off_equal_time_in_one_namespace", "points", report.Lower, measure.SourceOpen, m.together, report.Goal(5)),
		report.Compare("parts_of_alone", "%", report.Higher, measure.SourceOpen, m.dearAll, report.Goal(95)),
	}, m.sent.Results("bytes_", measure.SourceOpen, tolerance), []report.Result{
		report.Compare("bytes_together", "kbit/s", report.Higher, measure.SourceOpen, m.sent.Together, map[string]report.Samples{"what may be sent": {timeline.Bandwidth / 1e3}}),
	})
}

// draw draws the last round.
func (m *sharesMeasured) draw(w io.Writer) error {
	return chart.Draw(w,
		m.byRequests.Chart("Weights 1:1:1, then 40:40:20"),
		m.byTime.Chart(fmt.Sprintf("One lambda takes %d times as long", dearRun/cheapRun)),
		m.byBytes.Chart(fmt.Sprintf("%d Mbit/s by weights 1:1:1, then 40:40:20", int(timeline.Bandwidth/1e6))))
}
