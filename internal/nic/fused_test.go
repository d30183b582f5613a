package nic

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/fused"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/packets"
)

// fusedMembers builds the four lambdas of the λ-NIC paper's figure 9, each alone and all as one.
func fusedMembers(t *testing.T) (program *link.Program, alone []backend.Deployment) {
	t.Helper()
	sources, err := fused.Sources("../../lambdas")
	if err != nil {
		t.Fatal(err)
	}
	if program, err = link.Fuse(t.Context(), sources); err != nil {
		t.Fatal(err)
	}
	for i, source := range sources {
		a, err := compiler.BuildSource(t.Context(), source, compiler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		alone = append(alone, deployment(a, uint32(0x60000+i), 1))
	}
	return program, alone
}

// withMemcached gives the deployments services of their own on a NIC's host: equal requests find equal memories.
func withMemcached(t *testing.T, n *NIC, list []backend.Deployment) []backend.Deployment {
	t.Helper()
	addresses := map[string]netip.AddrPort{}
	for _, name := range []string{"memcached", "sessions"} {
		addresses[name], _ = startMemcached(t, n)
	}
	var out []backend.Deployment
	for _, d := range list {
		d.Services = nil
		for _, s := range d.Spec.Services {
			d.Services = append(d.Services, backend.Service{Name: s.Name, Protocol: s.Protocol, Addr: addresses[s.Name], Timeout: s.Timeout})
		}
		out = append(out, d)
	}
	return out
}

// One program for four lambdas answers what four programs answer, byte for byte.
func TestFusedAnswersTheSame(t *testing.T) {
	rounds := 1200
	if testing.Short() {
		rounds = 200
	}
	one, four := newTestNIC(t), newTestNIC(t)
	program, members := fusedMembers(t)
	if err := one.DeployFused(t.Context(), program.BPF, withMemcached(t, one, members)); err != nil {
		t.Fatal(err)
	}
	deploy(t, four, withMemcached(t, four, members)...)
	numbers := map[string]uint32{}
	for i, d := range members {
		numbers[d.Name] = members[i].Workload
	}
	p := &pair{t: t, nic: dial(t, one.Addr()), process: dial(t, four.Addr()), numbers: numbers}
	p.sentinel = packets.RPC{Workload: "web_server"}
	r := rand.New(rand.NewPCG(9, 9))
	kinds := map[string]func(*rand.Rand) packets.RPC{
		"kv_client": kvRequest, "sessions": kvRequest, "web_server": webRequest, "image_transformer": imageRequest,
	}
	answered := 0
	for i := range rounds {
		name := fused.Names[r.IntN(len(fused.Names))]
		q := kinds[name](r)
		q.Workload, q.Request = name, requests.Add(1)
		b := q.Build(numbers)
		if i%8 == 7 {
			b = packets.Mutate(r, b)
		}
		if p.compare(b[:min(len(b), api.RPCHeaderLen+api.RPCMaxPayload)]) {
			answered++
		}
	}
	if answered < rounds/2 {
		t.Errorf("only %d of %d were answered: the test has lost its edge", answered, rounds)
	}
}

// Members of a program are removed one by one, and make room for others.
func TestFusedMembersGoAlone(t *testing.T) {
	n := newTestNIC(t)
	program, members := fusedMembers(t)
	members = withMemcached(t, n, members)
	if err := n.DeployFused(t.Context(), program.BPF, members[:2]); !errors.Is(err, ErrRefused) {
		t.Errorf("too few members: %v", err)
	}
	if err := n.DeployFused(t.Context(), program.BPF, members); err != nil {
		t.Fatal(err)
	}
	if err := n.DeployFused(t.Context(), program.BPF, members); !errors.Is(err, ErrRefused) {
		t.Errorf("the same again: %v", err)
	}
	if err := n.Remove(t.Context(), members[0].Workload); err != nil {
		t.Fatal(err)
	}
	deploy(t, n, members[0])
	for _, d := range members {
		if _, ok := n.Endpoint(d.Workload); !ok {
			t.Errorf("%s is gone", d.Name)
		}
	}
}
