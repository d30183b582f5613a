package suite

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/chart"
)

const (
	modest      = 10_000 // requests per second of the tenant that keeps within its share
	mayLose     = 1      // per cent of them, within the bound
	sourceBound = "open loop from BPF_PROG_TEST_RUN live frames; answers and refusals counted where they arrive"
)

// overloads are how many requests the other tenant sends for each of those.
var overloads = []int{9, 19, 39, 59, 79, 99, 119, 139, 159, 179, 199, 219}

// An overload is what became of one load, in per cent of what was sent.
type overload struct {
	offered   report.Samples // requests per second of both tenants
	few, both report.Samples // answered, or refused with an error
}

// runOverload finds how much the NIC's CPU can refuse for a tenant that asks for too much, before it loses requests of one that does not.
func runOverload(ctx context.Context, s *stand.Stand, a *compiler.Artifact, o measure.Options, each time.Duration) (results []report.Result, err error) {
	tenants := [2]sharer{{"", measure.Workload, 1, cheapRun}, {"", shortWorkload, 2, cheapRun}}
	g, stop, err := twoTenants(ctx, s, a, tenants[:], measure.ClientCPU)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	all := make([]overload, len(overloads))
	var bound report.Samples
	for round := range o.Rounds {
		o.Log("isolation: overload, round %d of %d", round+1, o.Rounds)
		best := 0.0
		for i, times := range overloads {
			if err := all[i].sample(ctx, g, tenants, times, each); err != nil {
				return nil, err
			}
			if all[i].few[round] >= 100-mayLose {
				best = max(best, all[i].offered[round])
			}
		}
		bound = append(bound, best)
	}
	last := all[len(all)-1]
	return []report.Result{
		report.Compare("overload.bound", "1/s", report.Higher, sourceBound, bound, nil),
		report.Compare("overload.offered", "1/s", report.Higher, sourceBound, last.offered, nil),
		report.Compare("overload.answered", "%", report.Higher, sourceBound, last.few, map[string]report.Samples{"of both": last.both}),
	}, o.Plot("overload.svg", func(w io.Writer) error { return drawOverload(w, all) })
}

// sample offers a load for some time.
func (v *overload) sample(ctx context.Context, g *gen.Generator, tenants [2]sharer, times int, d time.Duration) error {
	l := gen.Load{Room: 64, Duration: d, Rate: modest * float64(times+1), Batch: 16}
	for i := range times + 1 {
		who := tenants[min(i, 1)]
		l.Requests = append(l.Requests, gen.Request{Header: api.Header{Workload: who.workload, Method: who.method}, Payload: make([]byte, 4)})
	}
	before, err := g.Workload(tenants[0].workload)
	if err != nil {
		return err
	}
	r, err := g.Run(ctx, l)
	if err != nil {
		return err
	}
	after, err := g.Workload(tenants[0].workload)
	if err != nil {
		return err
	}
	v.offered = append(v.offered, r.OfferedRate())
	v.few = append(v.few, 100*float64(after-before)*float64(times+1)/float64(r.Sent))
	v.both = append(v.both, 100*float64(r.Delivered+r.Errors)/float64(r.Sent))
	return nil
}

func drawOverload(w io.Writer, all []overload) error {
	few, both := chart.Line{Name: "of the tenant within its share"}, chart.Line{Name: "of both"}
	for _, v := range all {
		x := v.offered.Median() / 1000
		few.Points = append(few.Points, chart.Point{X: x, Y: v.few.Median()})
		both.Points = append(both.Points, chart.Point{X: x, Y: v.both.Median()})
	}
	return chart.Draw(w, chart.Chart{
		Title: "What a CPU answers or refuses", Lines: []chart.Line{few, both},
		X: chart.Axis{Label: "requests of both tenants (1,000/s)"}, Y: chart.Axis{Label: "answered or refused (%)", Max: 105},
	})
}
