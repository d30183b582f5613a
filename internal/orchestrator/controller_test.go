package orchestrator

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/test/seed"
)

// trace is a random course of events, seen by a Controller and by naive.
type trace struct {
	t        *testing.T
	r        *rand.Rand
	c        *Controller
	naive    *naive
	now      time.Duration
	sequence []uint16
	sizes    []int
	moving   []Decision
	gone     map[Decision]bool // without host and reason
	silent   map[uint32]bool
}

func newTrace(t *testing.T, r *rand.Rand) *trace {
	config := Config{
		Queue: uint16(1 + r.IntN(3)), Link: uint8(r.IntN(101)), Row: uint8(1 + r.IntN(4)), Slower: uint32(1 + r.IntN(50)), Silent: 1 + r.IntN(4),
		CoolDown: time.Duration(r.Int64N(int64(10 * Interval))),
	}
	var nics []NIC
	tr := &trace{t: t, r: r, gone: map[Decision]bool{}, silent: map[uint32]bool{}}
	for range 1 + r.IntN(5) {
		n := NIC{Host: r.Uint32(), Services: r.IntN(12)}
		nics, tr.sizes, tr.sequence = append(nics, n), append(tr.sizes, n.Services), append(tr.sequence, uint16(r.Uint32()))
	}
	c, err := New(config, nics)
	if err != nil {
		t.Fatal(err)
	}
	tr.c, tr.naive = c, newNaive(config, nics)
	return tr
}

// step is the next event.
func (tr *trace) step() {
	if tr.r.IntN(4) == 0 {
		tr.now += time.Duration(tr.r.Int64N(int64(Interval)))
	}
	if tr.r.IntN(500) == 0 {
		tr.now += time.Duration(tr.r.Int64N(int64(20 * Interval)))
	}
	now := tr.now - time.Duration(tr.r.Int64N(5)) // callers' clocks may go back
	switch k := tr.r.IntN(20); {
	case k < 15:
		tr.observe(now)
	case k < 17:
		tr.tick(now)
	case k < 19:
		tr.done(now)
	default:
		nic, service, cpu, mean := uint32(tr.r.IntN(len(tr.sizes)+1)), uint16(tr.r.IntN(13)), uint16(tr.r.IntN(AllCPU+10)), uint32(tr.r.IntN(200))
		got, want := tr.c.Place(nic, service, cpu, mean), tr.naive.place(nic, service, cpu, mean)
		if (got == nil) != (want == nil) {
			tr.t.Fatalf("place %d on %d: %v, want %v", service, nic, got, want)
		}
		if got == nil {
			delete(tr.gone, Decision{NIC: nic, Service: service})
		}
	}
	if got, want := tr.c.Counters(), tr.naive.counters; got != want {
		tr.t.Fatalf("counted\n%+v, want\n%+v", got, want)
	}
}

func (tr *trace) heartbeat() Heartbeat {
	nic := tr.r.IntN(len(tr.sizes) + 1)
	h := Heartbeat{NIC: uint32(nic), Queue: uint16(tr.r.IntN(4)), Link: uint8(tr.r.IntN(101)), Service: NoService}
	if nic == len(tr.sizes) {
		return h
	}
	s := &tr.sequence[nic]
	switch tr.r.IntN(20) {
	case 0: // lost ones, and at times half the circle
		*s += uint16(tr.r.IntN(5))
		if tr.r.IntN(20) == 0 {
			*s += 1<<15 - 2
		}
	case 1: // again, or late
		*s -= uint16(tr.r.IntN(4))
	}
	*s++
	h.Sequence = *s
	if tr.r.IntN(20) > 0 {
		h.Service, h.CPU, h.Time = uint16(tr.r.IntN(tr.sizes[nic]+1)), uint16(tr.r.IntN(20)), uint32(tr.r.IntN(200))
	}
	return h
}

func (tr *trace) observe(now time.Duration) {
	h := tr.heartbeat()
	got, ok := tr.c.Observe(h, now)
	if want, wantOK := tr.naive.observe(h, now); got != want || ok != wantOK {
		tr.t.Fatalf("%+v: %+v, %v, want %+v, %v", h, got, ok, want, wantOK)
	}
	if int(h.NIC) < len(tr.sizes) && !tr.c.nics[h.NIC].silent {
		delete(tr.silent, h.NIC)
	}
	if !ok {
		return
	}
	if slices.ContainsFunc(tr.moving, func(d Decision) bool { return d.NIC == got.NIC }) {
		tr.t.Fatalf("%+v, while one of %+v migrates", got, tr.moving)
	}
	if tr.gone[Decision{NIC: got.NIC, Service: got.Service}] {
		tr.t.Fatalf("%+v has left", got)
	}
	tr.moving = append(tr.moving, got)
}

func (tr *trace) tick(now time.Duration) {
	got, want := tr.c.Tick(now, nil), tr.naive.tick(now)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		tr.t.Fatalf("%v: silent: %d, want %d", now, got, want)
	}
	for _, n := range got {
		if tr.silent[n] {
			tr.t.Fatalf("NIC %d was silent before", n)
		}
		tr.silent[n] = true
	}
}

func (tr *trace) done(now time.Duration) {
	d := Decision{NIC: uint32(tr.r.IntN(len(tr.sizes) + 1)), Service: uint16(tr.r.IntN(12))}
	if len(tr.moving) > 0 && tr.r.IntN(4) > 0 {
		d = tr.moving[0]
	}
	ok := tr.r.IntN(3) > 0
	got, want := tr.c.Done(d, ok, now), tr.naive.done(d, ok, now)
	if (got == nil) != (want == nil) {
		tr.t.Fatalf("done %+v: %v, want %v", d, got, want)
	}
	if got != nil {
		return
	}
	if ok {
		tr.gone[Decision{NIC: d.NIC, Service: d.Service}] = true
	}
	tr.moving = slices.DeleteFunc(tr.moving, func(m Decision) bool { return m.NIC == d.NIC })
}

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
	for n := range 70 {
		x := tournament{make([]uint16, n), make([]uint16, n)}
		x.start()
		for range 20 * n {
			x.set(uint16(r.IntN(n)), uint16(r.IntN(10)))
			want := 0
			for i, c := range x.cpu {
				if c > x.cpu[want] {
					want = i
				}
			}
			if got, ok := x.best(); ok != (x.cpu[want] > 0) || ok && int(got) != want {
				t.Fatalf("%v: %d, %v, want %d", x.cpu, got, ok, want)
			}
		}
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
			if got := float64(c.averages[0]) / 8; math.Abs(got-want) > 1 {
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
