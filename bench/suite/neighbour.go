package suite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/compiler"
)

const (
	excess   = 10  // times its share, which the neighbour asks for
	riseGoal = 1.2 // times the p99 with a neighbour at its share

	neighbourTries = 10 // of one sample
)

// What the neighbour offers, in shares. An idle one sends a little, which shows that its generator runs. As the tenant leaves nearly all of its
// own share, the neighbour is served twice its share, and refused what is more.
var offers = [...]struct {
	name   string
	shares float64
}{{"idle neighbour", 0.02}, {"neighbour at its share", 1}, {"neighbour at twice its share", 2}, {"", excess}}

const (
	atShare = 1 // of offers
	most    = len(offers) - 1
)

// errDisturbed says that a sample is not of what it should be.
var errDisturbed = errors.New("the neighbour's load ended before the client")

// A neighbour is a tenant beside the one that is measured, and the samples of that one, by what the neighbour offers.
type neighbour struct {
	sharer
	share     float64 // requests per second that the neighbour is answered, if both tenants ask for more than there is
	p50, p99  [len(offers)]report.Samples
	offered   report.Samples // in shares, of its greatest offer
	disturbed int            // samples that were begun again
}

// neighbours are measured one after the other.
type neighbours struct {
	measure.Options
	s     *stand.Stand
	g     *gen.Generator
	calls time.Duration
}

// runNeighbour measures the latency of a tenant that keeps within its share, while another one asks for more and more.
func runNeighbour(ctx context.Context, s *stand.Stand, a *compiler.Artifact, o measure.Options, calls time.Duration) (results []report.Result, err error) {
	all := []*neighbour{{sharer: sharer{"short", shortWorkload, 2, cheapRun}}, {sharer: sharer{"long", longWorkload, 2, dearRun}}}
	g, stop, err := twoTenants(ctx, s, a, []sharer{{"", measure.Workload, 1, 0}, all[0].sharer, all[1].sharer}, measure.ServerCPU())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	m := &neighbours{o, s, g, calls}
	for round := range o.Rounds {
		o.Log("isolation: neighbour, round %d of %d", round+1, o.Rounds)
		for _, n := range all {
			if err := m.round(ctx, n, round%2 == 1); err != nil {
				return nil, err
			}
		}
	}
	for _, n := range all {
		results = append(results, n.results()...)
	}
	return results, nil
}

// round finds the neighbour's share, and takes a sample with each of its offers.
func (m *neighbours) round(ctx context.Context, n *neighbour, reverse bool) error {
	// Nobody else asks, so it is answered as much as both tenants together.
	r, err := m.g.Run(ctx, n.load(0, 300*time.Millisecond))
	if err != nil {
		return err
	}
	n.share = r.Rate() / 2
	if n.share == 0 {
		return fmt.Errorf("%w: nothing of the neighbour's load was answered", measure.ErrWrong)
	}
	for i := range offers {
		if reverse {
			i = len(offers) - 1 - i
		}
		if err := m.sample(ctx, n, i); err != nil {
			return err
		}
	}
	return nil
}

// load is the neighbour's. Where there is a CPU that neither the client nor the NIC has, the generator gets it.
func (n *neighbour) load(rate float64, d time.Duration) gen.Load {
	p := phase{asked: []sharer{n.sharer}}
	l := p.load(room, d)
	l.Rate, l.Batch, l.CPUs = rate, 8, []int{min(1, runtime.NumCPU()-1)} // fewer cannot all be sent in time, and more would come as bursts
	return l
}

// sample times the tenant's requests while the neighbour makes an offer, again where that ended too early, or the tenant was refused.
func (m *neighbours) sample(ctx context.Context, n *neighbour, offer int) (err error) {
	for range neighbourTries {
		var l measure.Latency
		var r gen.Result
		l, r, err = m.beside(ctx, n, offers[offer].shares*n.share)
		if err == nil {
			n.p50[offer], n.p99[offer] = append(n.p50[offer], l.Micros(50)), append(n.p99[offer], l.Micros(99))
			if offer == most {
				n.offered = append(n.offered, r.OfferedRate()/n.share)
			}
			return nil
		}
		if !errors.Is(err, errDisturbed) && !errors.Is(err, lambdanic.ErrBusy) {
			break
		}
		n.disturbed++
		m.Log("isolation: %v: is the machine busy? Once more", err)
	}
	return err
}

// beside times the tenant's requests while the neighbour offers a rate.
func (m *neighbours) beside(ctx context.Context, n *neighbour, rate float64) (l measure.Latency, r gen.Result, err error) {
	before, err := m.g.Workload(n.workload)
	if err != nil {
		return l, r, err
	}
	ended := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		defer close(ended)
		r, err = m.g.Run(ctx, n.load(rate, m.calls+300*time.Millisecond))
		return err
	})
	group.Go(func() (err error) {
		for now := before; now == before; time.Sleep(time.Millisecond) {
			if now, err = m.g.Workload(n.workload); err != nil {
				return err
			}
			if isClosed(ended) {
				return errDisturbed
			}
		}
		two := []byte{0, 0, 0, 0x40} // a float that the lambda gives back as it is
		call := []measure.Call{{Body: two, Want: two}}
		l, err = measure.CallFor(ctx, m.s.NIC.Addr().String(), call, m.calls, measure.ClientCPU, lambdanic.WithSpin())
		if err == nil && isClosed(ended) {
			err = errDisturbed
		}
		return err
	})
	err = group.Wait()
	return l, r, err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (n *neighbour) results() []report.Result {
	name := "neighbour." + n.name + "."
	rise, goal := report.Samples{}, report.Samples{}
	for i, p99 := range n.p99[most] {
		rise, goal = append(rise, p99/n.p99[atShare][i]), append(goal, riseGoal)
	}
	against := func(s [len(offers)]report.Samples) map[string]report.Samples {
		others := map[string]report.Samples{}
		for i, o := range offers[:most] {
			others[o.name] = s[i]
		}
		return others
	}
	all := []report.Result{
		report.Compare(name+"p50", "µs", report.Lower, measure.SourceClosed, n.p50[most], against(n.p50)),
		report.Compare(name+"p99", "µs", report.Lower, measure.SourceClosed, n.p99[most], against(n.p99)),
		report.Compare(name+"p99_rise", "times", report.Lower, measure.SourceClosed, rise, map[string]report.Samples{"goal": goal}),
		report.Compare(name+"offered", "shares", report.Higher, measure.SourceOpen, n.offered, nil),
	}
	if n.disturbed > 0 {
		all[1].Notes = append(all[1].Notes, fmt.Sprintf("samples that were begun again: %d", n.disturbed))
	}
	return all
}
