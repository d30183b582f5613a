package heartbeats

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/internal/orchestrator"
)

// small is a fleet with 40 overloaded NICs and 8 silent ones.
var small = Fleet{Servers: 100, NICs: 4, Lambdas: 10, Overloaded: 0.1, Silent: 0.02, Intervals: 9, Seed: 1}

// Each NIC that something happens to is found, once, and no other. Execution times vary by too little to be taken for an overload.
func TestFindsWhatHappened(t *testing.T) {
	if c := orchestrator.Default(); c.Row != orchestratorRow || c.Silent != orchestratorRow {
		t.Errorf("%+v needs other intervals than %d", c, orchestratorRow)
	}
	for _, lambdas := range []int{1, 2, 3, 10, 100} {
		for seed := range uint64(20) {
			f := small
			f.Lambdas, f.Seed = lambdas, seed
			o, err := f.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := o.Counters
			if o.Reasons["host starvation"] != 20 || o.Reasons["microservice overload"] != 20 || c.Decisions != 40 || c.Silent != 8 || c.Back != 0 {
				t.Errorf("%+v: %v, %+v", f, o.Reasons, c)
			}
			if c.Missing+c.Late+c.Duplicates+c.UnknownNICs+c.UnknownServices+c.NoCandidates != 0 {
				t.Errorf("%+v: %+v", f, c)
			}
			if len(o.Bursts) != 5 || o.Rate() <= 0 || o.Heartbeat.TotalCount() == 0 {
				t.Errorf("%+v: %d bursts, %d heartbeats", f, len(o.Bursts), o.Heartbeat.TotalCount())
			}
		}
	}
}

// A lambda leaves 100 ms after it was decided, and from the next heartbeat on nothing is wrong with its NIC any more.
func TestLambdasLeaveInTime(t *testing.T) {
	const takes = int(100 * time.Millisecond / orchestrator.Interval)
	f := small
	f.Silent, f.Intervals = 0, 30
	r, err := newRun(f)
	if err != nil {
		t.Fatal(err)
	}
	type leaving struct {
		nic    uint32
		lambda uint16
	}
	due := make(map[int][]leaving)
	decided, left := 0, 0
	for at := 1; at <= f.Intervals; at++ {
		before := make([]uint16, len(r.nics))
		for i := range r.nics {
			before[i] = r.nics[i].moved
		}
		if err := r.interval(at); err != nil {
			t.Fatal(err)
		}
		for _, l := range due[at] {
			left++
			if before[l.nic] != orchestrator.NoService || r.nics[l.nic].moved != l.lambda {
				t.Errorf("interval %d: lambda %d of NIC %d was to leave, and %d had left before, and now %d", at, l.lambda, l.nic, before[l.nic], r.nics[l.nic].moved)
			}
		}
		for _, d := range r.decisions {
			decided++
			due[at+takes] = append(due[at+takes], leaving{d.NIC, d.Service})
		}
	}
	gone := 0
	for i := range r.nics {
		if r.nics[i].moved != orchestrator.NoService {
			gone++
		}
	}
	if decided != 40 || left < 30 || gone != left {
		t.Errorf("%d were decided, %d were to leave, and %d left", decided, left, gone)
	}
}

// A seed decides all but times.
func TestSeed(t *testing.T) {
	digests := map[uint64]uint64{}
	for range 2 {
		for seed := range uint64(3) {
			f := small
			f.Seed = seed
			o, err := f.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if before, ok := digests[seed]; ok && before != o.Digest {
				t.Errorf("seed %d: %x and %x", seed, before, o.Digest)
			}
			digests[seed] = o.Digest
		}
	}
	if digests[0] == digests[1] || digests[1] == digests[2] {
		t.Errorf("the seeds have no effect: %x", digests)
	}
}

func TestDraw(t *testing.T) {
	var fleets []Fleet
	for _, servers := range []int{100, 200} {
		for _, lambdas := range []int{1, 10} {
			f := small
			f.Servers, f.Lambdas = servers, lambdas
			fleets = append(fleets, f)
		}
	}
	runs := 0
	outcomes, err := Sweep(t.Context(), fleets, func(int, int) { runs++ })
	if err != nil || runs != 4 {
		t.Fatal(err, runs)
	}
	var b bytes.Buffer
	if err := Draw(&b, outcomes); err != nil || !strings.Contains(b.String(), "10 lambdas a NIC") {
		t.Errorf("%v: %.100s", err, b.String())
	}
	f := small
	f.Overloaded = 0
	if outcomes, err = Sweep(t.Context(), []Fleet{f}, nil); err != nil {
		t.Fatal(err)
	}
	if err := Draw(&b, outcomes); err == nil || !strings.Contains(err.Error(), "no decision was timed") {
		t.Error(err)
	}
}

func TestRefuses(t *testing.T) {
	for want, change := range map[string]func(f *Fleet){
		"servers: 0 is not between":                     func(f *Fleet) { f.Servers = 0 },
		"1048577 is not between":                        func(f *Fleet) { f.Servers = 1<<20 + 1 },
		"400000 servers with 4 NICs each":               func(f *Fleet) { f.Servers = 400_000 },
		"lambdas: 65536 is not between":                 func(f *Fleet) { f.Lambdas = 1 << 16 },
		"at most 250000000 lambdas in all":              func(f *Fleet) { f.Servers, f.Lambdas = 50_000, 2000 },
		"shares of overloaded NICs, -1":                 func(f *Fleet) { f.Overloaded = -1 },
		"of silent ones, 0.95":                          func(f *Fleet) { f.Silent = 0.95 },
		"intervals: 3 is not between 4 and 10000":       func(f *Fleet) { f.Intervals = 3 },
		"100 servers with 0 NICs each: it has to be 1 ": func(f *Fleet) { f.NICs = 0 },
	} {
		f := small
		change(&f)
		if _, err := Sweep(t.Context(), []Fleet{small, f}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := Sweep(t.Context(), nil, nil); err == nil {
		t.Error("nothing was run")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := small.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
