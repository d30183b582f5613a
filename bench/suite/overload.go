package suite

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/receiver"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/chart"
)

const (
	modest      = 10_000 // requests per second of the tenant that keeps within its share, and datagrams of the host
	mayLose     = 1      // per cent of them, within their bounds
	sourceBound = "open loop from BPF_PROG_TEST_RUN live frames; answers and refusals counted where they arrive"
)

// overloads are how many requests the other tenant sends for each of those.
var overloads = []int{9, 19, 39, 59, 79, 99, 119, 139, 159, 179, 199, 219}

// An overload is what became of one load, in per cent of what was sent.
type overload struct {
	offered   report.Samples // packets per second of both tenants and the host
	few, both report.Samples // answered, or refused with an error
	host      report.Samples // come to the host's socket
}

// An overloader offers loads.
type overloader struct {
	g       *gen.Generator
	r       *receiver.Receiver
	tenants [2]sharer
	each    time.Duration
}

// runOverload finds how much the NIC's CPU can refuse for a tenant that asks for too much, before it loses requests of one that does not, or
// datagrams of the host.
func runOverload(ctx context.Context, s *stand.Stand, a *compiler.Artifact, o measure.Options, each time.Duration) (results []report.Result, err error) {
	tenants := [2]sharer{{"", measure.Workload, 1, cheapRun}, {"", shortWorkload, 2, cheapRun}}
	g, stop, err := twoTenants(ctx, s, a, tenants[:], measure.ClientCPU)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	r, err := receiver.Open(s.Fast, passingPort)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	over := overloader{g, r, tenants, each}
	all := make([]overload, len(overloads))
	var bound, hostBound report.Samples
	for round := range o.Rounds {
		o.Log("isolation: overload, round %d of %d", round+1, o.Rounds)
		best, hostBest := 0.0, 0.0
		for i, times := range overloads {
			if err := over.sample(ctx, &all[i], times); err != nil {
				return nil, err
			}
			if all[i].few[round] >= 100-mayLose {
				best = max(best, all[i].offered[round])
			}
			if all[i].host[round] >= 100-mayLose {
				hostBest = max(hostBest, all[i].offered[round])
			}
		}
		bound, hostBound = append(bound, best), append(hostBound, hostBest)
	}
	last := all[len(all)-1]
	return []report.Result{
		report.Compare("overload.bound", "1/s", report.Higher, sourceBound, bound, map[string]report.Samples{"of the host": hostBound}),
		report.Compare("overload.offered", "1/s", report.Higher, sourceBound, last.offered, nil),
		report.Compare("overload.answered", "%", report.Higher, sourceBound, last.few, map[string]report.Samples{"of both": last.both, "of the host": last.host}),
	}, o.Plot("overload.svg", func(w io.Writer) error { return drawOverload(w, all) })
}

// sample offers a load for some time.
func (o overloader) sample(ctx context.Context, v *overload, times int) error {
	l := gen.Load{Room: 64, Duration: o.each, Rate: modest * float64(times+2), Batch: 16, Requests: []gen.Request{{Port: passingPort}}}
	for i := range times + 1 {
		who := o.tenants[min(i, 1)]
		l.Requests = append(l.Requests, gen.Request{Header: api.Header{Workload: who.workload, Method: who.method}, Payload: make([]byte, 4)})
	}
	before, hostBefore, err := o.arrived()
	if err != nil {
		return err
	}
	r, err := o.g.Run(ctx, l)
	if err != nil {
		return err
	}
	after, hostAfter, err := o.arrived()
	if err != nil {
		return err
	}
	each := float64(r.Sent) / float64(times+2) // of the modest tenant, and of the host
	v.offered = append(v.offered, r.OfferedRate())
	v.few = append(v.few, 100*float64(after-before)/each)
	v.both = append(v.both, 100*float64(r.Delivered+r.Errors)/(float64(r.Sent)-each))
	v.host = append(v.host, 100*float64(hostAfter-hostBefore)/each)
	return nil
}

// arrived counts the modest tenant's answers, and the host's datagrams.
func (o overloader) arrived() (few, host uint64, err error) {
	few, err = o.g.Workload(o.tenants[0].workload)
	if err != nil {
		return 0, 0, err
	}
	host, err = o.r.Received()
	return few, host, err
}

func drawOverload(w io.Writer, all []overload) error {
	few, both := chart.Line{Name: "of the tenant within its share"}, chart.Line{Name: "of both tenants"}
	host := chart.Line{Name: "of the host"}
	for _, v := range all {
		x := v.offered.Median() / 1000
		few.Points = append(few.Points, chart.Point{X: x, Y: v.few.Median()})
		both.Points = append(both.Points, chart.Point{X: x, Y: v.both.Median()})
		host.Points = append(host.Points, chart.Point{X: x, Y: v.host.Median()})
	}
	return chart.Draw(w, chart.Chart{
		Title: "What a CPU serves", Lines: []chart.Line{few, both, host},
		X: chart.Axis{Label: "packets to the CPU (1,000/s)"}, Y: chart.Axis{Label: "answered, refused with an error, or received (%)", Max: 105},
	})
}
