package orchestrator

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
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
