package nic

import (
	"errors"
	"math"
	"net"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// onLink has its function run the NIC program on frames as if the link had brought them.
func onLink(t testing.TB, n *NIC, do func(arrive func(frame []byte) (verdict string, out []byte))) {
	t.Helper()
	err := veth.InNamed(virtualNames(n.cfg.Instance).namespace, func() error {
		link, err := net.InterfaceByName(virtualNames(n.cfg.Instance).nic)
		if err != nil {
			return err
		}
		do(func(frame []byte) (string, []byte) {
			// struct xdp_md of linux/bpf.h
			type context struct{ _, dataEnd, _, ingress, _, _ uint32 }
			opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, 4096), Context: context{dataEnd: uint32(len(frame)), ingress: uint32(link.Index)}}
			v, err := n.Root().Run(&opts)
			if err != nil {
				t.Error(err)
			}
			return verdicts[v], opts.DataOut
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// arrive runs the NIC program on a frame as if the link had brought it.
func arrive(t testing.TB, n *NIC, frame []byte) (verdict string, out []byte) {
	t.Helper()
	onLink(t, n, func(arrive func([]byte) (string, []byte)) { verdict, out = arrive(frame) })
	return verdict, out
}

// period is the number of the current one of bpf/refuse.h.
func period(t testing.TB) uint64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return uint64(now.Nano()) / uint64(limits.RawLnRefusalsOfLN_REFUSALS_NS)
}

// refusedAfter sends a request that is refused, after so many answers to the namespace's packets and to all in the same period.
func refusedAfter(t testing.TB, n *NIC, mine, all uint64) api.Header {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		f := request("a few bytes")
		frame, p := build(t, &f), period(t)
		if err := errors.Join(
			putOnCPUs(n.prog.LnAllowances, index(tenant), limits.Allowance{Refusals: limits.RawLnRefusals{Period: p, Answered: mine}}),
			putOnCPUs(n.prog.LnCpus, 0, limits.CPU{LeftNs: -second, Refusals: limits.RawLnRefusals{Period: p, Answered: all}}),
		); err != nil {
			t.Fatal(err)
		}
		verdict, out := arrive(t, n, frame)
		if period(t) != p {
			continue
		}
		if verdict == "drop" {
			return api.Header{}
		}
		h, _, err := api.ParsePacket(out[beforeRPC:])
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	t.Fatal("no run ended in the period in which it began")
	return api.Header{}
}

// A CPU answers so many refusals in a period, and the packets of one namespace take at most a half of what is left; all others are dropped. So it
// is for all reasons for which a namespace's packets are refused.
func TestRefusalsAnswered(t *testing.T) {
	n := newTagged(t)
	none := uint64(0)
	const most = uint64(limits.RawLnRefusalsOfLN_REFUSALS)
	never := limits.RawLnLinks{UntilNs: math.MaxInt64} // the links are taken up to then
	for _, reason := range []struct {
		code   api.Code
		limits backend.Limits
		links  limits.RawLnLinks
	}{
		{code: api.CodeOverQuota, limits: backend.Limits{Quotas: map[uint32]api.Quota{tenant: {Requests: &none}}}},
		{code: api.CodeBusy, limits: backend.Limits{Budget: api.Budget{Time: 1}, Quotas: map[uint32]api.Quota{tenant: {}}}},
		{code: api.CodeBusy, limits: backend.Limits{Budget: api.Budget{Bandwidth: 1e9}, Quotas: map[uint32]api.Quota{tenant: {}}}, links: never},
		{code: api.CodeBadTag, limits: backend.Limits{Keys: map[uint32]api.Keys{tenant: {Required: true}}}},
	} {
		if err := errors.Join(n.Limit(t.Context(), reason.limits), n.prog.LnLinksTaken.Put(uint32(0), reason.links)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			mine, all uint64
			answered  bool
		}{
			{0, 0, true}, {most/2 - 1, most / 2, true}, {most / 2, most / 2, false}, {0, most - 1, true}, {1, most - 1, false}, {0, most, false},
		} {
			h := refusedAfter(t, n, c.mine, c.all)
			if got := h.Type == api.TypeError && api.Code(h.Code) == reason.code; got != c.answered || !got && h.Type != 0 {
				t.Errorf("after %d answers, %d to all: %+v, want the error %v: %t", c.mine, c.all, h, reason.code, c.answered)
			}
		}
	}
}
