package orchestrator

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/test/seed"
)

// A Controller decides and counts as scans do, on random traces. Never do two microservices of a NIC migrate at a time, nor one that has
// left, and a silent NIC is reported once.
func TestLikeNaive(t *testing.T) {
	r := seed.Rand(t)
	var all Counters
	for range 200 {
		tr := newTrace(t, r)
		for range 2000 {
			tr.step()
		}
		c := tr.c.Counters()
		all.Decisions += c.Decisions
		all.Silent += c.Silent
		all.Back += c.Back
		all.Migrated += c.Migrated
	}
	if all.Decisions < 1000 || all.Silent < 1000 || all.Back < 1000 || all.Migrated < 1000 {
		t.Errorf("the traces show little: %+v", all)
	}
}

// The tree finds what a scan finds.
func TestTournament(t *testing.T) {
	r := seed.Rand(t)
	for _, n := range []int{0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 100, 511, 512, 513, 600, 1000, 5000} {
		x := make(tournament, places(n))
		x.start()
		for range min(20*n, 5000) {
			x.set(uint16(r.IntN(n)), uint16(r.IntN(10)))
			want := 0
			for i, s := range x {
				if s.cpu > x[want].cpu {
					want = i
				}
			}
			if got, ok := x.best(); ok != (x[want].cpu > 0) || ok && int(got) != want {
				t.Fatalf("%v: %d, %v, want %d", x, got, ok, want)
			}
		}
	}
}

// Heartbeats that are taken in together bring what they bring one by one.
func TestObserveAll(t *testing.T) {
	r := seed.Rand(t)
	nics := []NIC{{Services: 20}, {Services: 0}, {Services: 3}, {Services: 9}}
	one, err := New(Default(), nics)
	if err != nil {
		t.Fatal(err)
	}
	all, err := New(Default(), nics)
	if err != nil {
		t.Fatal(err)
	}
	sequence := uint16(0)
	for range 300 {
		var heartbeats []Heartbeat
		var want []Decision
		for range r.IntN(3 * batch) {
			sequence += uint16(r.IntN(3))
			h := Heartbeat{NIC: r.Uint32N(5), Sequence: sequence, Queue: uint16(r.IntN(70) * 10), Service: uint16(r.IntN(25)), CPU: uint16(r.IntN(100)), Time: r.Uint32N(1000)}
			heartbeats = append(heartbeats, h)
			if d, ok := one.Observe(h, 0); ok {
				want = append(want, d)
			}
		}
		if got := all.ObserveAll(heartbeats, 0, nil); !slices.Equal(got, want) || all.Counters() != one.Counters() {
			t.Fatalf("%+v, want %+v", got, want)
		}
		for _, d := range want {
			if err := errors.Join(one.Done(d, false, 0), all.Done(d, false, 0)); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []*Controller{one, all} {
			for i := range c.nics {
				c.nics[i].coolTill = 0
			}
		}
	}
	if one.Counters().Decisions < 100 {
		t.Errorf("the heartbeats show little: %+v", one.Counters())
	}
}

// The average in whole numbers stays within 1 ns of the real one, for all execution times.
func TestAverage(t *testing.T) {
	r := seed.Rand(t)
	for _, scale := range []uint32{1, 10, 1000, MaxTime} {
		c, err := New(Default(), []NIC{{Services: 1}})
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for i := range 1000 {
			x := 1 + r.Uint32N(scale)
			if i%100 < 20 {
				x = scale
			}
			c.Observe(Heartbeat{Sequence: uint16(i), Time: x}, 0)
			if want == 0 {
				want = float64(x)
			}
			want += (float64(x) - want) / 8
			if got := float64(c.services[0].average) / 8; math.Abs(got-want) > 1 {
				t.Fatalf("up to %d ns: %f, want %f", scale, got, want)
			}
		}
	}
}

// The least execution time that is more than 20 % above the average is 121 where the average is 100.
func TestThreshold(t *testing.T) {
	for time, want := range map[uint32]bool{50: false, 100: false, 120: false, 121: true, 200: true} {
		c, err := New(Default(), []NIC{{Host: 9, Services: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Place(0, 0, 10, 100); err != nil {
			t.Fatal(err)
		}
		if err := c.Place(0, 1, 20, 100); err != nil {
			t.Fatal(err)
		}
		d, ok := c.Observe(Heartbeat{CPU: 10, Time: time}, 0)
		if ok != want || ok && d != (Decision{NIC: 0, Host: 9, Service: 1, Reason: Overload}) {
			t.Errorf("%d ns: %+v, %v, want %v", time, d, ok, want)
		}
	}
}

// A heartbeat costs no memory, whatever becomes of it.
func TestNoAllocation(t *testing.T) {
	c, err := New(Default(), []NIC{{Services: 100}, {Services: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var b [Size]byte
	h := Heartbeat{Queue: 1000, CPU: 3, Time: 10}
	silent := make([]uint32, 0, 2)
	now := time.Duration(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += Interval
		h.Sequence++
		h.Service = (h.Service + 1) % 101
		h.Time += 5
		_ = h.Encode(b[:])
		_, _ = Decode(b[:3])
		got, _ := Decode(b[:])
		if d, ok := c.Observe(got, now); ok {
			_ = c.Done(d, h.Sequence%2 == 0, now)
		}
		c.Tick(now, silent[:0])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := c.Counters(); got.Decisions < 10 || got.Silent != 1 {
		t.Errorf("it shows little: %+v", got)
	}
}

func TestRefuses(t *testing.T) {
	for want, change := range map[string]func(c *Config, nics *[]NIC){
		"queue: 0 packets":           func(c *Config, _ *[]NIC) { c.Queue = 0 },
		"link: 101 %":                func(c *Config, _ *[]NIC) { c.Link = 101 },
		"row: 0 heartbeats":          func(c *Config, _ *[]NIC) { c.Row = 0 },
		"slower: 0 %":                func(c *Config, _ *[]NIC) { c.Slower = 0 },
		"silent: 0 intervals":        func(c *Config, _ *[]NIC) { c.Silent = 0 },
		"cool-down: -1ns":            func(c *Config, _ *[]NIC) { c.CoolDown = -1 },
		"1048577 NICs":               func(_ *Config, nics *[]NIC) { *nics = make([]NIC, MaxNIC+2) },
		"NIC 0: 65536 microservices": func(_ *Config, nics *[]NIC) { *nics = []NIC{{Services: NoService + 1}} },
	} {
		config, nics := Default(), []NIC{{Services: 1}}
		change(&config, &nics)
		if _, err := New(config, nics); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for r, want := range map[Reason]string{Starvation: "host starvation", Overload: "microservice overload", 7: "reason 7"} {
		if r.String() != want {
			t.Errorf("%v, want %s", r, want)
		}
	}
}
