package suite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/cpu"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/rdma"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// An rdmaSide is a way for a message into a lambda's memory, and its samples.
type rdmaSide struct {
	name string
	open func(ctx context.Context, s *stand.Stand) (*rdma.Sender, error)
	rate report.Samples // MB/s
	nic  report.Samples // ns of the NIC program per KiB of message
}

const rdmaTime = 400 * time.Millisecond

func byRDMA(icrc api.ICRC) func(context.Context, *stand.Stand) (*rdma.Sender, error) {
	return func(ctx context.Context, s *stand.Stand) (*rdma.Sender, error) {
		return rdma.ByRDMA(ctx, s.NIC, measure.Workload, icrc)
	}
}

func rdmaSides() []*rdmaSide {
	return []*rdmaSide{
		{name: "check", open: byRDMA(api.ICRCCheck)},
		{name: "trust", open: byRDMA(api.ICRCTrust)},
		{name: "λ-RPC", open: func(_ context.Context, s *stand.Stand) (*rdma.Sender, error) {
			return rdma.ByRPC(s.NIC, measure.Workload)
		}},
	}
}

// runRDMA compares the ways on the NIC's own pair, with the clients of this project, in rounds, each of which visits the ways in
// the reverse order of the last.
func runRDMA(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	a, err := rdma.BuildLambda(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.NIC.Deploy(ctx, stand.Deployment(a, measure.Workload, nil)); err != nil {
		return nil, err
	}
	sides := rdmaSides()
	for round := range o.Rounds {
		o.Log("rdma: round %d of %d", round+1, o.Rounds)
		for i := range sides {
			if round%2 == 1 {
				i = len(sides) - 1 - i
			}
			if err := sides[i].sample(ctx, s); err != nil {
				return nil, fmt.Errorf("%s: %w", sides[i].name, err)
			}
		}
	}
	return rdmaResults(sides), nil
}

// sample measures the rate first and the NIC program's time then, as counting that slows it down.
func (d *rdmaSide) sample(ctx context.Context, s *stand.Stand) (err error) {
	sender, err := d.open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sender.Close()) }()
	sent, took, err := sendFor(ctx, sender, rdmaTime)
	if err != nil {
		return err
	}
	d.rate = append(d.rate, float64(sent)*rdma.Size/1e6/took.Seconds())
	p, err := cpu.NewProgram(s.NIC.Root())
	if err != nil {
		return err
	}
	before, err := p.Read()
	if err == nil {
		sent, _, err = sendFor(ctx, sender, rdmaTime/4)
	}
	after, err2 := p.Read()
	if err := errors.Join(err, err2, p.Close()); err != nil {
		return err
	}
	d.nic = append(d.nic, float64((after-before).Nanoseconds())/float64(sent*rdma.Size/1024))
	return nil
}

// sendFor sends one message after the other.
func sendFor(ctx context.Context, sender *rdma.Sender, d time.Duration) (sent int, took time.Duration, err error) {
	message := make([]byte, rdma.Size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(message)
	for began := time.Now(); took < d; took = time.Since(began) {
		message[0], message[len(message)-1] = byte(sent), byte(sent>>8)
		if err := sender.Send(ctx, message); err != nil {
			return sent, took, err
		}
		sent++
	}
	return sent, took, nil
}

func rdmaResults(sides []*rdmaSide) (rs []report.Result) {
	const source = "messages of 1 MiB one behind the other from one client in Go, every answer checked"
	rpc := sides[len(sides)-1]
	for _, d := range sides[:len(sides)-1] {
		rs = append(rs,
			report.Compare("icrc_"+d.name+".throughput", "MB/s", report.Higher, source, d.rate, map[string]report.Samples{rpc.name: rpc.rate}),
			report.Compare("icrc_"+d.name+".nic_time", "ns/KiB", report.Lower, source+"; run time of the NIC program with its lambda", d.nic,
				map[string]report.Samples{rpc.name: rpc.nic}))
	}
	var icrc report.Samples
	for i := range sides[0].nic {
		icrc = append(icrc, sides[0].nic[i]-sides[1].nic[i])
	}
	return append(rs, report.Compare("icrc.cost", "ns/KiB", report.Lower, "run time with the check less that without, round by round", icrc, nil))
}
