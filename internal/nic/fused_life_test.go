package nic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/packets"
)

// tally answers how often it ran in total, and since its revision was loaded. On request it does something forbidden, and reports how
// far it came.
const tally = `#include "lambda.h"
LAMBDA_KEPT static uint32_t ticks[3];
LAMBDA_KEPT uint32_t runs;
static uint32_t fresh, rounds, few[4];
int %[1]s(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t counts[3] = { 0, 0, match_data->method == 3 ? rounds : 1 };
	if (match_data->method == 1)
		few[match_data->payload_len]++;
	for (volatile uint32_t i = 0; match_data->method == 2; i++)
		rounds++, ticks[i & 1]++;
	counts[0] = ++runs;
	counts[1] = ++fresh;
	return lambda_write(headers, counts, sizeof(counts));
}
`

// tallies are such lambdas, each alone and all as one program.
type tallies struct {
	alone   []backend.Deployment
	program *link.Program
}

func buildTallies(t *testing.T, limits ...string) (all tallies) {
	t.Helper()
	var sources [][]byte
	for i, limit := range limits {
		name := fmt.Sprintf("tally%d", i)
		text := fmt.Sprintf(tally, name)
		a, err := buildFiles(map[string][]byte{
			name + ".c": []byte(text), api.SpecFile: []byte("name: " + name + "\ntargets: [nic]\nlimits: {time: " + limit + "}\n"),
		})
		if err != nil {
			t.Fatal(err)
		}
		all.alone = append(all.alone, deployment(a, uint32(0x70000+i), 1))
		sources = append(sources, a.Source)
	}
	var err error
	if all.program, err = link.Fuse(t.Context(), sources); err != nil {
		t.Fatal(err)
	}
	return all
}

// at gives the deployments the number of a revision.
func (l tallies) at(revision uint32) []backend.Deployment {
	list := append([]backend.Deployment{}, l.alone...)
	for i := range list {
		list[i].Revision = revision
	}
	return list
}

func (l tallies) fused(revision uint32) backend.Fused { return fuse(l.program, l.at(revision)...) }

// tallyFrame makes a request of a tally.
func tallyFrame(t testing.TB, workload, method uint32) []byte {
	f := packets.Frame{RPC: packets.RPC{Workload: "it", Method: method, Request: requests.Add(1), Payload: strings.Repeat(".", 12)}}
	frame, err := f.Build(map[string]uint32{"it": workload})
	if err != nil {
		t.Error(err)
	}
	return frame
}

// tallied is a tally's answer.
func tallied(t testing.TB, n *NIC, workload, method uint32) (counts [3]uint32) {
	t.Helper()
	frame := tallyFrame(t, workload, method)
	_, out := inject(t, n, frame)
	h, p, err := packets.Answer(frame, out)
	if err != nil || h.Type != api.TypeResponse || len(p) != 12 {
		t.Fatalf("got %+v %x, %v", h, p, err)
	}
	for i := range counts {
		counts[i] = binary.LittleEndian.Uint32(p[4*i:])
	}
	return counts
}

// wantFault sends a request that makes a tally fail.
func wantFault(t testing.TB, n *NIC, workload, method uint32) {
	t.Helper()
	frame := tallyFrame(t, workload, method)
	_, out := inject(t, n, frame)
	h, _, err := packets.Answer(frame, out)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, fmt.Sprintf("method %d", method), h, api.CodeLambdaFault)
}

// The life of two lambdas: together, apart and together again. Kept objects count on from each revision to the next, and the lambdas do
// not affect each other.
func TestFusedLife(t *testing.T) {
	c := testConfig(t)
	n := open(t, c)
	v := buildTallies(t, "50us", "50us")
	a, b := v.alone[0].Workload, v.alone[1].Workload

	deploy(t, n, v.at(1)...)
	wantCounts(t, n, a, 1, 1, 1, 1)
	wantCounts(t, n, b, 1, 1, 1, 1)
	wantCounts(t, n, b, 1, 2, 2, 1)
	fused := v.fused(2)
	if err := n.DeployFused(t.Context(), fused); err != nil { // alone to fused
		t.Fatal(err)
	}
	wantCounts(t, n, a, 2, 2, 1, 1)
	wantCounts(t, n, b, 2, 3, 1, 1)
	wantFault(t, n, a, 1)
	wantFault(t, n, a, 2)
	wantCounts(t, n, b, 2, 4, 2, 1)
	wantCounts(t, n, a, 2, 3, 2, 1)
	if err := n.DeployFused(t.Context(), fused); err != nil { // the same again: nothing begins anew
		t.Fatal(err)
	}
	wantCounts(t, n, a, 2, 4, 3, 1)
	if err := n.DeployFused(t.Context(), v.fused(3)); err != nil { // fused to fused
		t.Fatal(err)
	}
	wantCounts(t, n, a, 3, 5, 1, 1)
	wantCounts(t, n, b, 3, 5, 1, 1)
	deploy(t, n, v.at(4)[0]) // fused to alone; the other stays
	wantCounts(t, n, a, 4, 6, 1, 1)
	wantCounts(t, n, b, 3, 6, 2, 1)

	shut(t, n) // a daemon that comes back finds both
	n = open(t, c)
	if !n.Adopted() {
		t.Fatal("not adopted")
	}
	wantCounts(t, n, a, 4, 7, 2, 1)
	wantCounts(t, n, b, 3, 7, 3, 1)
	if err := n.DeployFused(t.Context(), v.fused(5)); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, n, a, 5, 8, 1, 1)
	wantCounts(t, n, b, 5, 8, 1, 1)
	if err := n.Remove(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, n, b, 5, 9, 2, 1)
	if _, ok := n.Endpoint(a); ok {
		t.Error("a removed member has an endpoint")
	}
	eventually(t, "one slot is left", func() bool { return usage(n).slots == 1 })
	if err := n.Remove(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no slot is left", func() bool { return usage(n).slots == 0 })
}

// After a reboot, members that are still wanted come back in the program that they were deployed in.
func TestFusedSomeMembers(t *testing.T) {
	n := newTestNIC(t)
	v := buildTallies(t, "50us", "50us")
	f := v.fused(3)
	f.Serving = f.Serving[1:]
	if err := n.DeployFused(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, n, v.alone[1].Workload, 3, 1, 1, 1)
	if _, ok := n.Endpoint(v.alone[0].Workload); ok {
		t.Error("what was not asked for serves")
	}
}

// Each member is ended by its own limits.time, not by the longest of the members'.
func TestFusedTime(t *testing.T) {
	n := newTestNIC(t)
	v := buildTallies(t, "20us", "200us")
	if err := n.DeployFused(t.Context(), v.fused(1)); err != nil {
		t.Fatal(err)
	}
	var rounds []uint32
	for _, d := range v.alone {
		wantFault(t, n, d.Workload, 2)
		rounds = append(rounds, tallied(t, n, d.Workload, 3)[2])
	}
	// A round costs both the same.
	if ratio := float64(rounds[1]) / float64(rounds[0]); ratio < 9 || ratio > 11 {
		t.Errorf("%d rounds in 20us, %d in 200us", rounds[0], rounds[1])
	}
}

// All members are swapped, or none. An impossible deployment is refused and leaves nothing behind.
func TestFusedAllOrNone(t *testing.T) {
	n := newTestNIC(t)
	v := buildTallies(t, "50us", "50us")
	other := counter(t, v.alone[1].Workload, 1, 1) // keeps another object
	deploy(t, n, v.alone[0], other)
	wantCounts(t, n, v.alone[0].Workload, 1, 1, 1, 1)
	before := usage(n)
	wantError(t, n.DeployFused(t.Context(), v.fused(2)), "its kept objects differ")
	short := v.fused(2)
	short.Members = short.Members[:1]
	if err := n.DeployFused(t.Context(), short); !errors.Is(err, ErrRefused) {
		t.Errorf("too few members: %v", err)
	}
	foreign := v.fused(2)
	foreign.Serving[1].Workload++
	if err := n.DeployFused(t.Context(), foreign); !errors.Is(err, ErrRefused) {
		t.Errorf("no member of it: %v", err)
	}
	if after := usage(n); after != before {
		t.Errorf("%+v in use, before %+v", after, before)
	}
	wantCounts(t, n, v.alone[0].Workload, 1, 2, 2, 1)
	wantCounts(t, n, other.Workload, 1, 1, 1, 1)
}

// While both CPUs ask, two lambdas are fused, separated and fused again. Each request is answered, and kept objects have counted each
// once.
func TestFusedSwapsUnderLoad(t *testing.T) {
	n := newTestNIC(t)
	v := buildTallies(t, "50us", "50us")
	deploy(t, n, v.at(1)...)
	var stop atomic.Bool
	var sent [2]atomic.Uint32
	var load sync.WaitGroup
	for i, d := range v.alone { // one asker for each: the counters are not atomic
		load.Go(func() {
			for !stop.Load() && !t.Failed() {
				if verdict, _ := inject(t, n, tallyFrame(t, d.Workload, 0)); verdict != "reply" {
					t.Errorf("a request got %q", verdict)
				}
				sent[i].Add(1)
			}
		})
	}
	const last = 21
	for revision := uint32(2); revision <= last; revision++ {
		before := [2]uint32{sent[0].Load(), sent[1].Load()}
		if revision%2 == 0 {
			if err := n.DeployFused(t.Context(), v.fused(revision)); err != nil {
				t.Error(err)
			}
		} else {
			deploy(t, n, v.at(revision)...)
		}
		eventually(t, "both were asked", func() bool {
			return sent[0].Load() > before[0] && sent[1].Load() > before[1] || t.Failed()
		})
	}
	stop.Store(true)
	load.Wait()
	for i, d := range v.alone {
		if kept := tallied(t, n, d.Workload, 0)[0]; kept != sent[i].Load()+1 {
			t.Errorf("%s was asked %d times, and counted %d", d.Name, sent[i].Load(), kept-1)
		}
	}
}
