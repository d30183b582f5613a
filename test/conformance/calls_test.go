package conformance

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/impair"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// sizes are calls around the lengths where packets, acknowledgements and windows begin, where a packet holds so many bytes.
func sizes(single int) (all []call) {
	const f, most = api.RPCFragment, api.RPCMaxPayload
	for _, n := range []int{0, 1, 511, 512, 513, most - 21, most - 20, most - 19, most, most + 1, 2 * f, 2*f + 1, 16 * f, 17*f - 5, 64 * f, 65*f + 4, 700*f + 3} {
		if n <= single {
			all = append(all, call{Workload: echoPacket, Body: text(n)})
		}
		for _, w := range []uint32{echoAssemble, echoStream, greyStream, keepStream, echoWhole} {
			if w != greyStream || n%4 == 0 {
				all = append(all, call{Workload: w, Body: text(n)})
			}
		}
		if n > 0 {
			all = append(all, call{Workload: echoPacket, Method: uint32(n), Body: text(9)})
			all = append(all, call{Workload: echoAssemble, Method: uint32(n), Body: text(9 * f), ReplyRoom: n % 700})
		}
	}
	return all
}

// Every combination of lengths of request and reply arrives whole, over both families.
func TestCalls(t *testing.T) {
	for address, single := range loopback {
		s := serve(t, address, rpcserver.Faults{})
		each(t, func(t *testing.T, d *driver) {
			d.open(settings{Address: s.Addr().String()})
			for _, atOnce := range []bool{false, true} {
				d.answered(t, atOnce, sizes(single)...)
			}
			if st := d.stats(); st.Malformed > 0 || st.Restarts > 0 {
				t.Errorf("%+v", st)
			}
			d.close()
		})
	}
}

// The server may forget messages and replies of several packets once the client has its answer.
func TestMessagesAreReleased(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	each(t, func(t *testing.T, d *driver) {
		d.open(settings{Address: s.Addr().String()})
		d.answered(t, true,
			call{Workload: echoAssemble, Body: text(100_000)}, call{Workload: greyStream, Body: text(100_000)},
			call{Workload: keepStream, Body: text(100_000)}, call{Workload: echoAssemble, Method: 10_000, Body: text(1)})
		d.close()
		if !rpcserver.Every(time.Millisecond, time.Minute, func() bool { return s.Records() == 0 }) {
			t.Errorf("%d messages are kept", s.Records())
		}
	})
}

// On a bad network, every call still gets its right answer, over both families.
func TestBadNetwork(t *testing.T) {
	var calls []call
	for i := range 60 {
		n := 28 * i
		if i%lastWorkload+1 == echoPacket {
			n %= 1300
		}
		calls = append(calls, call{Workload: uint32(i%lastWorkload + 1), Body: text(n)})
	}
	calls = append(calls, call{Workload: echoAssemble, Body: text(300_000)}, call{Workload: echoPacket, Method: 300_000})
	for _, c := range []struct {
		address string
		faults  impair.Faults
	}{
		{"127.0.0.1:0", impair.Faults{Seed: 1, Drop: 0.1}},
		{"[::1]:0", impair.Faults{Seed: 2, Duplicate: 0.3}},
		{"127.0.0.1:0", impair.Faults{Seed: 3, Reorder: 0.2, Behind: 3}},
		{"127.0.0.1:0", impair.Faults{Seed: 4, Drop: 0.05, Duplicate: 0.05, Reorder: 0.1, Jitter: 2 * time.Millisecond}},
		{"[::1]:0", impair.Faults{Seed: 5, Drop: 0.05, Duplicate: 0.05, Reorder: 0.1, Jitter: 2 * time.Millisecond}},
		{"127.0.0.1:0", impair.Faults{Seed: 6, Delay: 45 * time.Millisecond, Drop: 0.02}}, // more than the first interval
	} {
		s := serve(t, c.address, rpcserver.Faults{})
		each(t, func(t *testing.T, d *driver) {
			r := behind(t, s.Addr(), c.faults)
			d.open(settings{Address: r.Addr().String()})
			d.answered(t, true, calls...)
			d.answered(t, false, calls[:4]...)
			if st, up := d.stats(), r.Counts(impair.ToServer); up.Dropped > 0 && st.Resent == 0 {
				t.Errorf("%+v: %+v, the network did %+v", c.faults, st, up)
			}
			d.close()
		})
	}
}

// A header with a wrong bit may end a call with an error or another answer, but never hangs the call or harms the client: when the network
// works again, every call of the same client is answered.
func TestCorruptHeaders(t *testing.T) {
	calls := make([]call, 200)
	for i := range calls {
		n := i % 5 * 800
		if i%lastWorkload+1 == echoPacket {
			n %= 1300
		}
		calls[i] = call{Workload: uint32(i%lastWorkload + 1), Body: text(n)}
	}
	hurried := slices.Clone(calls)
	for i := range hurried {
		hurried[i].DeadlineUS = 2_000_000
	}
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	each(t, func(t *testing.T, d *driver) {
		r, err := s.Corrupting()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		d.open(settings{Address: r.Addr().String(), TimeoutMS: 60_000, MaxReply: 1_000_000})
		d.call(true, hurried...)
		r.Close()
		well, err := impair.Start(impair.Config{Listen: r.Addr().String(), Server: s.Addr()})
		if err != nil {
			t.Fatal(err)
		}
		defer well.Close()
		d.answered(t, true, calls...)
		d.close()
	})
}

// Hundreds of calls in flight on one socket all get their own answers.
func TestManyInFlight(t *testing.T) {
	calls := make([]call, 1000)
	for i := range calls {
		calls[i] = call{Workload: echoPacket, Body: text(i % 1300)}
		if i%100 == 0 {
			calls[i] = call{Workload: echoAssemble, Body: text(20_000)}
		}
	}
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{Seed: 5, Drop: 0.01, Reorder: 0.02, Duplicate: 0.02})
	each(t, func(t *testing.T, d *driver) {
		d.open(settings{Address: s.Addr().String()})
		d.answered(t, true, calls...)
		d.close()
	})
}

// A server that needs more room says how much, and gets it. The client remembers how long a method's replies were.
func TestRoom(t *testing.T) {
	each(t, func(t *testing.T, d *driver) {
		s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
		s.Refuse(func(h *api.Header) (api.Code, int) {
			if h.Type == api.TypeRequest && h.Method == 1 {
				return api.CodeTooLarge, 1200
			}
			return 0, 0
		})
		open := func() { d.open(settings{Address: s.Addr().String()}) }
		open()
		if o, st := d.call(false, call{Workload: echoPacket, Method: 1})[0], d.stats(); o.Error != "too large" || o.Need != 1200 || st.Restarts != 1 {
			t.Errorf("%+v, %+v", o, st)
		}
		d.close()
		for _, c := range []struct {
			calls []call
			pulls uint64
		}{
			{[]call{{Workload: echoPacket, Method: 900}}, 1},
			{[]call{{Workload: echoPacket, Method: 900}, {Workload: echoPacket, Method: 900}}, 1},
			{[]call{{Workload: echoPacket, Method: 900, ReplyRoom: 300}}, 2},
			{[]call{{Workload: echoPacket, Method: 900, ReplyRoom: 900}}, 0},
		} {
			before, resent := s.Stats.Pulls.Load(), s.Stats.Resends.Load()
			open()
			d.answered(t, false, c.calls...)
			d.close()
			if n := s.Stats.Pulls.Load() - before; n != c.pulls && s.Stats.Resends.Load() == resent {
				t.Errorf("%+v: %d pulls, want %d", c.calls, n, c.pulls)
			}
		}
	})
}

// With resends off, a lost packet fails its call, and nothing is sent twice.
func TestWithoutResend(t *testing.T) {
	const lost = 1 // the method
	calls := make([]call, 12)
	for i := range calls {
		calls[i] = call{Workload: echoPacket, Method: 100}
		if i%4 == 1 {
			calls[i] = call{Workload: echoPacket, Method: lost, DeadlineUS: 200_000} // enough for several resends
		}
	}
	each(t, func(t *testing.T, d *driver) {
		s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
		s.Lose(func(h *api.Header) bool { return h.Method == lost })
		d.open(settings{Address: s.Addr().String(), WithoutResend: true})
		for i, o := range d.call(true, calls...) {
			if want := map[bool]string{true: "deadline exceeded"}[calls[i].Method == lost]; o.Error != want {
				t.Errorf("call %d: %+v", i, o)
			}
		}
		if n, st := s.Stats.Packets.Load(), d.stats(); n > uint64(len(calls)) || st.Resent > 0 {
			t.Errorf("%d packets came of %d calls, %+v", n, len(calls), st)
		}
		d.close()
	})
}

// A revision that goes away between the first packet of a reply and its pulls costs a second attempt.
func TestStaleStartsOver(t *testing.T) {
	each(t, func(t *testing.T, d *driver) {
		s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
		var pulls atomic.Int32
		s.Refuse(func(h *api.Header) (api.Code, int) {
			if h.Type == api.TypePull && pulls.Add(1) == 1 {
				return api.CodeStale, 0
			}
			return 0, 0
		})
		d.open(settings{Address: s.Addr().String()})
		d.answered(t, false, call{Workload: echoPacket, Method: 5000})
		if st := d.stats(); st.Restarts != 1 {
			t.Errorf("%+v", st)
		}
		d.close()
	})
}

// Packets for no call, packets that contradict their call, and packets from elsewhere change nothing. Each is counted as what it is.
func TestForgedReplies(t *testing.T) {
	f, err := rpcserver.StartForger()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	each(t, func(t *testing.T, d *driver) {
		d.open(settings{Address: f.Addr(), WithoutResend: true})
		for i, forgery := range rpcserver.Forgeries {
			before := d.stats()
			o := d.call(false, call{Workload: 3, Method: uint32(i), Body: forgery.Body()})[0]
			if o.Error != "" || string(o.Body) != string(forgery.Body()) {
				t.Errorf("%s: %+v", forgery.Name, o)
			}
			st := d.stats()
			st.Stray -= before.Stray
			st.Malformed -= before.Malformed
			if stray, malformed := forgery.Counts(); st.Stray != stray || st.Malformed != malformed {
				t.Errorf("%s: %d stray, %d malformed, want %d and %d", forgery.Name, st.Stray, st.Malformed, stray, malformed)
			}
		}
		d.close()
	})
}
