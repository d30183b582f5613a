package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/bench/costs"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/test/rig"
)

const sourceCost = "BPF_PROG_TEST_RUN of the NIC program: 1,000 rounds of a loop, less a run without, per round; estimated: `build --report`'s"

// operationCosts measures single operations of C on the NIC, beside the compiler's estimates.
func operationCosts(ctx context.Context, r *rig.Rig, o measure.Options) (rs []report.Result, err error) {
	for _, op := range append([]costs.Operation{costs.Empty, costs.Walked}, costs.Operations...) {
		o.Log("compiler: %s", op.Title)
		c, err := measureCost(ctx, r, op, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.Name, err)
		}
		rs = append(rs, c.result(op))
	}
	return rs, nil
}

// A cost is the time of a round, in ns.
type cost struct {
	times    report.Samples
	estimate float64 // 0 if the round has loops of its own, which have no estimate
}

func measureCost(ctx context.Context, r *rig.Rig, op costs.Operation, o measure.Options) (c cost, err error) {
	a, err := op.Build(ctx)
	if err != nil {
		return c, err
	}
	if !op.Walked {
		if c.estimate, err = estimateRound(a); err != nil {
			return c, err
		}
	}
	if err := r.Put(ctx, a); err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, r.Remove(ctx)) }()
	body := doubles(1.5, 0.9999, 1.0001, 1.5)
	if err := agreeOn(r, costs.Rounds, body); err != nil {
		return c, err
	}
	for range o.Rounds {
		err := measure.OnCPU(measure.ServerCPU(), func() error {
			d, err := loopTime(r, body, 0, costs.Rounds)
			c.times = append(c.times, d/costs.Rounds)
			return err
		})
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// agreeOn compares the NIC's answer with the process's, except for the clock.
func agreeOn(r *rig.Rig, method uint32, body []byte) error {
	got, err := r.AskNIC(method, body)
	if err != nil {
		return err
	}
	want, err := r.AskProcess(method, body)
	if err != nil {
		return err
	}
	if got.Type != want.Type || got.Code != want.Code || len(got.Payload) < 8 || !bytes.Equal(got.Payload[8:], want.Payload[8:]) {
		return fmt.Errorf("%w: NIC %v, process %v", measure.ErrWrong, got, want)
	}
	return nil
}

// estimateRound is the report's estimate for the loop of an artifact.
func estimateRound(a *compiler.Artifact) (float64, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(a.BPF))
	if err != nil {
		return 0, err
	}
	e, err := metering.EstimateTime(spec, compiler.Program)
	if err == nil && len(e.Loops) == 1 {
		return e.Loops[0], nil
	}
	return 0, err
}

func (c cost) result(op costs.Operation) report.Result {
	times := max(1, float64(op.Times))
	var each report.Samples
	for _, t := range c.times {
		each = append(each, t/times)
	}
	var against map[string]report.Samples
	if c.estimate > 0 {
		against = map[string]report.Samples{"estimated": {c.estimate / times}}
	}
	return report.Compare("cost."+op.Name, "ns", report.Lower, sourceCost, each, against)
}
