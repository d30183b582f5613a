package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/multiply"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// replyPackets are the lengths of reply that are compared.
var replyPackets = []int{2, 4, multiply.MaxPackets}

// replyBatch is how many reply packets are under way together: a quarter of a veth ring (VETH_RING_SIZE of
// drivers/net/veth.c), which loses packets when it is full.
const replyBatch = 64

// replyWay is a way to send a reply of many packets.
type replyWay struct {
	name   string
	load   func(packets int) gen.Load
	attach func(p *link.Pair, packets int) (link.Attachment, error) // nil where the NIC program serves
}

// replyWays begins with the way of the product, as a bare program.
var replyWays = []replyWay{
	{"pulled", pullLoad, multiply.AttachPull},
	{"multiplied", multiplyLoad, multiply.AttachMultiply},
	{"pulled from the NIC program", pullLoad, nil},
}

// pullLoad asks for each packet of a reply with a packet that has as much room.
func pullLoad(packets int) gen.Load {
	l := gen.Load{Room: multiply.Size, Batch: replyBatch}
	for i := range packets {
		h := api.Header{Workload: measure.Workload, Method: uint32(packets)}
		if i > 0 {
			h.Type, h.Revision, h.MessageLen = api.TypePull, 1, uint32(multiply.Size)
			h.Index, h.Count = uint32(i), uint32(packets)
		}
		l.Requests = append(l.Requests, gen.Request{Header: h})
	}
	return l
}

// multiplyLoad asks once, with the shortest possible packet.
func multiplyLoad(packets int) gen.Load {
	return gen.Load{
		Requests: []gen.Request{{Header: api.Header{Workload: measure.Workload, Method: uint32(packets)}}},
		Replies:  packets, Batch: replyBatch / packets,
	}
}

// replyFigures are one way's samples for one length of reply.
type replyFigures struct {
	rate, bytes, loss report.Samples
	cpu, asking       report.Samples
	p50, p99          report.Samples
	load              gen.Load
	known             float64 // sustained requests per second
}

// runReplies compares the ways on the NIC's own pair, in rounds, each of which visits the ways in the reverse order of the
// last.
func runReplies(ctx context.Context, s *stand.Stand, o measure.Options) (rs []report.Result, err error) {
	a, err := multiply.BuildLambda(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.NIC.Deploy(ctx, stand.Deployment(a, measure.Workload, nil)); err != nil {
		return nil, err
	}
	for _, packets := range replyPackets {
		figures := make([]replyFigures, len(replyWays))
		for round := range o.Rounds {
			o.Log("replies: %d packets, round %d of %d", packets, round+1, o.Rounds)
			for i := range replyWays {
				if round%2 == 1 {
					i = len(replyWays) - 1 - i
				}
				if err := figures[i].sample(ctx, s, replyWays[i], packets); err != nil {
					return nil, fmt.Errorf("%d packets %s: %w", packets, replyWays[i].name, err)
				}
			}
		}
		rs = append(rs, replyResults(packets, figures)...)
	}
	return rs, nil
}

// sample takes one sample of each figure.
func (f *replyFigures) sample(ctx context.Context, s *stand.Stand, w replyWay, packets int) error {
	f.load = w.load(packets)
	f.load.Duration = 200 * time.Millisecond
	asking, err := costOfAsking(ctx, s, f.load)
	if err != nil {
		return err
	}
	f.asking = append(f.asking, asking)
	if w.attach == nil {
		return f.sampleWay(ctx, s, w, packets)
	}
	a, err := w.attach(s.Fast, packets)
	if err != nil {
		return err
	}
	return errors.Join(f.sampleWay(ctx, s, w, packets), a.Close())
}

// costOfAsking is the client's CPU time, in ns, per packet of a reply, measured with a far end that drops everything.
func costOfAsking(ctx context.Context, s *stand.Stand, l gen.Load) (ns float64, err error) {
	far, err := s.Fast.DropPeer()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, far.Close()) }()
	err = generating(s.Fast, func(g *gen.Generator) error {
		r, err := g.Run(ctx, l)
		ns = float64(r.CPU) / float64(max(r.Expected, 1))
		return err
	})
	return ns, err
}

// generating attaches the generator while f runs.
func generating(p *link.Pair, f func(*gen.Generator) error) error {
	g, err := gen.New(p, gen.Options{})
	if err != nil {
		return err
	}
	return errors.Join(f(g), g.Close())
}

// sampleWay measures a way that is attached: first by a client, then under load.
func (f *replyFigures) sampleWay(ctx context.Context, s *stand.Stand, w replyWay, packets int) error {
	l, err := receiveFor(s.NIC.Addr(), w, packets, f.load.Duration)
	if err != nil {
		return err
	}
	f.p50, f.p99 = append(f.p50, l.Micros(50)), append(f.p99, l.Micros(99))
	return generating(s.Fast, func(g *gen.Generator) error {
		c, err := gen.Refine(ctx, func(ctx context.Context, rate float64) (gen.Result, error) {
			f.load.Rate = rate
			return g.Run(ctx, f.load)
		}, f.known)
		if err != nil {
			return err
		}
		f.known = c.Open.OfferedRate()
		f.rate = append(f.rate, c.Open.Rate())
		f.bytes = append(f.bytes, float64(c.Open.Bytes)/c.Open.Elapsed.Seconds()/1e6)
		flood := c.Points[0].Result
		f.loss = append(f.loss, 100*flood.Loss())
		f.cpu = append(f.cpu, float64(flood.CPU)/float64(max(flood.Delivered, 1)))
		return nil
	})
}

const (
	sourceFlood = "as much as one CPU generates; scheduler's account of the generating thread, in whose soft interrupts both ends work"
	sourceSent  = "counted out"
)

// replyResults are the figures of one length of reply.
func replyResults(packets int, figures []replyFigures) (rs []report.Result) {
	for _, f := range []struct {
		name, unit string
		better     report.Better
		source     string
		of         func(replyFigures) report.Samples
	}{
		{"packets", "1/s", report.Higher, measure.SourceOpen, func(f replyFigures) report.Samples { return f.rate }},
		{"bytes", "MB/s", report.Higher, measure.SourceOpen, func(f replyFigures) report.Samples { return f.bytes }},
		{"loss_when_flooded", "%", report.Lower, sourceFlood, func(f replyFigures) report.Samples { return f.loss }},
		{"cpu_per_packet", "ns", report.Lower, sourceFlood, func(f replyFigures) report.Samples { return f.cpu }},
		{"cpu_of_asking", "ns", report.Lower, sourceFlood, func(f replyFigures) report.Samples { return f.asking }},
		{"whole_p50", "µs", report.Lower, measure.SourceClosed, func(f replyFigures) report.Samples { return f.p50 }},
		{"whole_p99", "µs", report.Lower, measure.SourceClosed, func(f replyFigures) report.Samples { return f.p99 }},
		{"packets_sent", "per reply", report.Lower, sourceSent, func(f replyFigures) report.Samples {
			return report.Samples{float64(len(f.load.Requests))}
		}},
		{"bytes_sent", "per reply", report.Lower, sourceSent, func(f replyFigures) report.Samples {
			return report.Samples{float64(len(f.load.Requests) * (api.RPCHeaderLen + f.load.Room))}
		}},
		{"amplification", "times", report.Lower, sourceSent, func(f replyFigures) report.Samples {
			sent := len(f.load.Requests) * (api.RPCHeaderLen + f.load.Room)
			return report.Samples{float64(packets*(api.RPCHeaderLen+multiply.Size)) / float64(sent)}
		}},
	} {
		others := map[string]report.Samples{}
		for i, w := range replyWays[1:] {
			others[w.name] = f.of(figures[i+1])
		}
		name := fmt.Sprintf("reply_of_%d.%s", packets, f.name)
		rs = append(rs, report.Compare(name, f.unit, f.better, f.source, f.of(figures[0]), others))
	}
	return rs
}
