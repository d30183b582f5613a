package nic

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/fused"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
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

// fuse is a fused program with all of its members, or the first of them.
func fuse(p *link.Program, serving ...backend.Deployment) backend.Fused {
	f := backend.Fused{BPF: p.BPF, Spec: p.Spec(), Serving: serving}
	for i, m := range p.Members {
		id := ^uint32(i)
		if i < len(serving) {
			id = serving[i].Workload
		}
		f.Members = append(f.Members, backend.FusedMember{Name: m.Name, Workload: id})
	}
	return f
}

// withMemcached gives the deployments memcacheds of their own on a NIC's host: equal requests find equal contents.
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
			d.Services = append(d.Services, backend.Service{Name: s.Name, Protocol: s.Protocol, Servers: []netip.AddrPort{addresses[s.Name]}, Timeout: api.Duration(longest)})
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
	if err := one.DeployFused(t.Context(), fuse(program, withMemcached(t, one, members)...)); err != nil {
		t.Fatal(err)
	}
	deploy(t, four, withMemcached(t, four, members)...)
	numbers := map[string]uint32{}
	for i, d := range members {
		numbers[d.Name] = members[i].Workload
	}
	p := &pair{t: t, nic: dial(t, one.Addr()), process: dial(t, four.Addr()), numbers: numbers}
	r := seed.Rand(t)
	kinds := map[string]func(*rand.Rand) packets.RPC{
		"kv_client": kvRequest, "sessions": kvRequest, "web_server": webRequest, "image_transformer": imageRequest,
	}
	for i := range rounds {
		name := fused.Names[i%len(fused.Names)]
		q := kinds[name](r)
		q.Workload, q.Request = name, requests.Add(1)
		lambda := name
		if name == "sessions" {
			lambda = "kv_client" // under another name
		}
		// Of the same lambda, so that the answers come in the service's order.
		p.sentinel = answered[lambda][1]
		p.sentinel.Workload = name
		p.compareRound(lambda, i/len(fused.Names), q, r.IntN(8) == 0, r)
	}
}

// plainC is a lambda that needs the compiler's passes, and keeps memory from request to request.
const plainC = `#include "lambda.h"
static uint8_t bytes[2048];
static uint32_t seen[256];
static uint32_t hash(const uint8_t *p, uint32_t n)
{
	uint32_t h = %d;
	for (uint32_t i = 0; i < n; i++) {
		h = h * 33 ^ p[i];
		h += seen[p[i]]++;
	}
	return h;
}
int plain%d(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t n = lambda_read(headers, bytes, sizeof(bytes)), h = hash(bytes, n);
	return lambda_write(headers, &h, sizeof(h));
}
`

// Members in ordinary C count apart, each in its own memory, as they do alone.
func TestFusedOrdinaryC(t *testing.T) {
	one, two := newTestNIC(t), newTestNIC(t)
	var sources [][]byte
	var alone []backend.Deployment
	numbers := map[string]uint32{}
	for i := range 2 {
		name := fmt.Sprintf("plain%d", i)
		dir := t.TempDir()
		for file, text := range map[string]string{
			name + ".c": fmt.Sprintf(plainC, 5381+i, i), api.SpecFile: "name: " + name + "\ntargets: [nic]\nlimits: {memory: 1MiB, time: 1ms}\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		source, err := compiler.PackSource(dir)
		if err != nil {
			t.Fatal(err)
		}
		a, err := compiler.BuildSource(t.Context(), source, compiler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, source)
		numbers[name] = uint32(0x60000 + i)
		alone = append(alone, deployment(a, numbers[name], 1))
	}
	program, err := link.Fuse(t.Context(), sources)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.DeployFused(t.Context(), fuse(program, alone...)); err != nil {
		t.Fatal(err)
	}
	deploy(t, two, alone...)
	r := rand.New(rand.NewPCG(3, 6))
	for range 300 {
		f := packets.Frame{RPC: packets.RPC{
			Workload: fmt.Sprintf("plain%d", r.IntN(2)), Request: requests.Add(1), Payload: random(r, r.IntN(200)), Room: 256,
		}}
		frame, err := f.Build(numbers)
		if err != nil {
			t.Fatal(err)
		}
		verdict, got := inject(t, one, frame)
		wantVerdict, want := inject(t, two, frame)
		if verdict != wantVerdict || verdict != "reply" || !bytes.Equal(got, want) {
			t.Fatalf("%s %x, alone %s %x", verdict, got, wantVerdict, want)
		}
	}
}
