package network

import (
	"math"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/random"
)

const us = event.Microsecond

// rig is a network with a clock of its own, which notes when each message arrived.
type rig struct {
	*Network
	events event.Queue[func()]
	there  map[int64]event.Time
}

func newRig(t *testing.T, c Config, hosts int) *rig {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	r := &rig{there: map[int64]event.Time{}}
	r.Network = New(c, hosts,
		func(in event.Time, e Event) { r.events.Push(r.events.Now()+in, func() { r.Handle(e) }) },
		func(id int64) {
			if _, ok := r.there[id]; ok {
				t.Errorf("message %d arrived twice", id)
			}
			r.there[id] = r.events.Now()
		})
	return r
}

// run runs until nothing happens any more, and checks that all messages arrived and nothing is kept.
func (r *rig) run(t *testing.T, messages int) {
	t.Helper()
	for {
		_, f := r.events.Pop()
		if f == nil {
			break
		}
		(*f)()
	}
	if len(r.there) != messages {
		t.Fatalf("%d of %d messages arrived", len(r.there), messages)
	}
	if r.messages.Len() != 0 || r.packets.Len() != 0 {
		t.Errorf("messages or packets are kept that nobody waits for")
	}
	for i := range r.hosts {
		if h := &r.hosts[i]; h.sending || h.receiving || h.waiting != 0 || len(h.mine)+len(h.theirs) != 0 || h.pulls.Len() != 0 {
			t.Errorf("host %d is not idle: %+v", i, h)
		}
	}
}

// At 100 Gbit/s, a byte takes 80 ps.
func TestTimes(t *testing.T) {
	c := config(Queued)
	for size, want := range map[int]event.Time{
		0: us + 2*64*80, 1500: us + 2*1564*80, 1501: us + 2*1564*80 + 65*80, 3000: us + 3*1564*80,
	} {
		if got := c.Alone(size); got != want {
			t.Errorf("%d bytes take %d ps, want %d", size, got, want)
		}
	}
}

func config(t Transport) Config {
	return Config{Transport: t, Rate: 100e9, Hop: us / 2, MTU: 1500}
}

var all = []Transport{Queued, NDP, Homa}

// A message that is alone takes as long as its bytes and the hops do, by every transport.
func TestAlone(t *testing.T) {
	for _, tr := range all {
		for _, size := range []int{0, 1, 1500, 1501, 100_000, 10_000_000} {
			c := config(tr)
			r := newRig(t, c, 2)
			r.Send(0, 1, size, 7)
			r.run(t, 1)
			want := c.Alone(size)
			if got := r.there[7]; got < want || float64(got) > 1.01*float64(want) || got != want && tr == Queued {
				t.Errorf("%v: %d bytes took %d ps, want %d", tr, size, got, want)
			}
		}
	}
}

// All hosts send to one at the same time. Its link is never idle, so they take as long as their bytes; and NDP's switch keeps little.
func TestIncast(t *testing.T) {
	const senders, size = 100, 30_000
	for _, tr := range all {
		c := config(tr)
		r := newRig(t, c, senders+1)
		for i := range senders {
			r.Send(int32(i+1), 0, size, int64(i))
		}
		r.run(t, senders)
		var last event.Time
		for _, at := range r.there {
			last = max(last, at)
		}
		ideal := c.takes(senders*(size+20*header)) + c.takes(1500+header) + 2*c.Hop
		if float64(last) < float64(ideal) || float64(last) > 1.05*float64(ideal) {
			t.Errorf("%v: the last message was there after %v, at full rate it would be %v", tr, last.Duration(), ideal.Duration())
		}
		most := map[Transport]int{Queued: senders * (size + 20*header), NDP: kept*1564 + senders*20*header, Homa: senders * (size + 20*header)}[tr]
		if r.Deepest > most {
			t.Errorf("%v: %d bytes waited at the switch, want at most %d", tr, r.Deepest, most)
		}
	}
}

// Two that send to two receivers do not meet.
func TestNoMeeting(t *testing.T) {
	for _, tr := range all {
		c := config(tr)
		r := newRig(t, c, 4)
		r.Send(0, 2, 50_000, 0)
		r.Send(1, 3, 50_000, 1)
		r.run(t, 2)
		if alone := c.Alone(50_000); r.there[0] != r.there[1] || float64(r.there[0]) > 1.01*float64(alone) {
			t.Errorf("%v: %v and %v, alone it takes %v", tr, r.there[0].Duration(), r.there[1].Duration(), alone.Duration())
		}
	}
}

// Messages of one packet from everywhere to one host wait as in M/D/1 (the switch's queue, fed by many links).
func TestQueueAtTheSwitch(t *testing.T) {
	const senders, messages, load = 2000, 200_000, 0.8
	c := config(Queued)
	r := newRig(t, c, senders+1)
	draw := random.New(1, 0)
	service := float64(c.takes(1500 + header))
	at, sent := event.Time(0), map[int64]event.Time{}
	for i := range messages {
		at += event.Time(draw.ExpFloat64() * service / load)
		id, from, now := int64(i), int32(1+draw.IntN(senders)), at
		sent[id] = at
		r.events.Push(now, func() { r.Send(from, 0, 1500, id) })
	}
	r.run(t, messages)
	var sum float64
	for id, there := range r.there {
		sum += float64(there - sent[id] - c.Alone(1500))
	}
	wait, want := sum/messages/service, load/2/(1-load)
	if math.Abs(wait/want-1) > 0.03 {
		t.Errorf("a packet waits for %.3f others, want %.3f", wait, want)
	}
}

// Small messages among large ones, at 80 % load: Homa and NDP get them through much sooner than one queue does.
func TestSmallAmongLarge(t *testing.T) {
	tail := func(tr Transport) float64 {
		const hosts, messages = 20, 20_000
		c := config(tr)
		r := newRig(t, c, hosts)
		draw := random.New(1, 0)
		mean := 0.9*300 + 0.1*100_000.0
		gap := float64(c.takes(int(mean*1564/1500))) / 0.8 / hosts
		at, sent := event.Time(0), map[int64]event.Time{}
		for i := range messages {
			at += event.Time(draw.ExpFloat64() * gap)
			size := 300
			if draw.IntN(10) == 0 {
				size = 100_000
			}
			from := int32(draw.IntN(hosts))
			to := (from + 1 + int32(draw.IntN(hosts-1))) % hosts
			id := int64(i)
			if size == 300 {
				sent[id] = at
			}
			r.events.Push(at, func() { r.Send(from, to, size, id) })
		}
		r.run(t, messages)
		var slow []float64
		for id, began := range sent {
			slow = append(slow, float64(r.there[id]-began)/float64(c.Alone(300)))
		}
		slices.Sort(slow)
		return slow[len(slow)*99/100]
	}
	q, n, h := tail(Queued), tail(NDP), tail(Homa)
	t.Logf("p99 slowdown of small messages: queued %.1f, NDP %.1f, Homa %.1f", q, n, h)
	if h > 3 || n > q/2 || h > n {
		t.Errorf("p99 slowdown of small messages: queued %.1f, NDP %.1f, Homa %.1f", q, n, h)
	}
}

// Far more than the switch keeps comes for one host at once. NDP trims packets, so that the queue stays short, asks for what was trimmed, and
// still keeps the host's link busy.
func TestTrimming(t *testing.T) {
	const senders, size = 32, 60_000
	r := newRig(t, config(NDP), senders+1)
	for i := range senders {
		r.Send(int32(i+1), 0, size, int64(i))
	}
	packets, headers := senders*r.cfg.packets(size), senders*r.cfg.window()
	r.run(t, senders)
	if most := (kept+1)*(1500+header) + headers*header; r.Deepest > most {
		t.Errorf("%d bytes waited, want %d at most", r.Deepest, most)
	}
	least := event.Time(packets) * r.cfg.takes(1500+header)
	if took := r.events.Now(); took < least || took > least*11/10 {
		t.Errorf("took %v, want %v and at most a tenth more", took.Duration(), least.Duration())
	}
}

func TestBadConfigs(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"rate: 0 bit/s is not between 1 Mbit/s and 10 Tbit/s": func(c *Config) { c.Rate = 0 },
		"hop: the time is negative":                           func(c *Config) { c.Hop = -1 },
		"mtu: 0 bytes are not between 64 and 65536":           func(c *Config) { c.MTU = 0 },
		"window: -1 packets is negative":                      func(c *Config) { c.Window = -1 },
	} {
		c := config(NDP)
		change(&c)
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, tr := range all {
		if got, err := ParseTransport(tr.String()); err != nil || got != tr {
			t.Errorf("%v is read as %v, %v", tr, got, err)
		}
	}
	if _, err := ParseTransport("tcp"); err == nil {
		t.Error("tcp is taken for a transport")
	}
}
