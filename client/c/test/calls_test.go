package test

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/impair"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// sizes are lengths around which new packets, acknowledgements and windows begin, if a packet holds single bytes.
func sizes(single int) (all []request) {
	const f, most = api.RPCFragment, api.RPCMaxPayload
	for _, n := range []int{0, 1, 511, 512, 513, most - 21, most - 20, most - 19, most, most + 1, 2 * f, 2*f + 1, 16 * f, 17*f - 5, 64 * f, 65*f + 4, 700*f + 3} {
		if n <= single {
			all = append(all, request{workload: echoPacket, body: text(n)})
		}
		for _, w := range []uint32{echoAssemble, echoStream, greyStream, keepStream, echoWhole} {
			if w != greyStream || n%4 == 0 {
				all = append(all, request{workload: w, body: text(n)})
			}
		}
		if n > 0 {
			all = append(all, request{workload: echoPacket, method: uint32(n), body: text(9)})
			all = append(all, request{workload: echoAssemble, method: uint32(n), body: text(9 * f), room: uint32(n % 700)})
		}
	}
	return all
}

// Every combination of lengths of request and reply arrives whole, over both families.
func TestCalls(t *testing.T) {
	for address, single := range map[string]int{"127.0.0.1:0": api.RPCMaxPayload, "[::1]:0": api.RPCMaxPayload - 20} {
		s := serve(t, address, rpcserver.Faults{})
		sum := check(t, s.Addr().String(), sizes(single))
		if sum.malformed > 0 || sum.restarts > 0 {
			t.Errorf("%s: %+v", address, sum)
		}
	}
}

// The server may forget messages and replies of several packets once the client has its reply.
func TestMessagesAreReleased(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	check(t, s.Addr().String(), []request{
		{workload: echoAssemble, body: text(100_000)}, {workload: greyStream, body: text(100_000)}, {workload: keepStream, body: text(100_000)},
		{workload: echoAssemble, method: 10_000, body: text(1)},
	})
	if !rpcserver.Every(time.Millisecond, time.Minute, func() bool { return s.Records() == 0 }) {
		t.Errorf("%d messages are kept", s.Records())
	}
}

// On a bad network, every call still gets its right answer.
func TestBadNetwork(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	var requests []request
	for i := range 200 {
		w := uint32(i%6 + 1)
		n := 4 * (i * 7)
		if w == echoPacket {
			n %= 1300
		}
		requests = append(requests, request{workload: w, body: text(n)})
	}
	requests = append(requests, request{workload: echoAssemble, body: text(300_000)}, request{workload: echoPacket, method: 300_000})
	for name, faults := range map[string]impair.Faults{
		"loss":        {Seed: 1, Drop: 0.1},
		"duplicates":  {Seed: 2, Duplicate: 0.3},
		"reordering":  {Seed: 3, Reorder: 0.2, Behind: 3},
		"everything":  {Seed: 4, Drop: 0.05, Duplicate: 0.05, Reorder: 0.1, Jitter: 2 * time.Millisecond},
		"slow":        {Seed: 5, Delay: 15 * time.Millisecond},
		"great delay": {Seed: 6, Delay: 45 * time.Millisecond, Drop: 0.02}, // more than the first interval
	} {
		down := faults
		down.Seed += 100
		r, err := impair.Start(impair.Config{Listen: "127.0.0.1:0", Server: s.Addr(), Up: faults, Down: down})
		if err != nil {
			t.Fatal(err)
		}
		some := requests
		if faults.Delay > 0 {
			some = requests[len(requests)-12:] // one after the other takes long
		}
		sum := check(t, r.Addr().String(), some, "timeout=60000")
		if up := r.Counts(impair.ToServer); up.Dropped > 0 && sum.resent == 0 {
			t.Errorf("%s: %+v, the network did %+v", name, sum, up)
		}
		r.Close()
	}
}

// A header with a wrong bit may end a call with an error or another answer, but never hangs the call or harms the client.
func TestCorruptHeaders(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	r, err := s.Corrupting()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	requests := make([]request, 300)
	for i := range requests {
		requests[i] = request{workload: uint32(i%6 + 1), body: text(i % 5 * 800)}
	}
	for _, way := range ways {
		drive(t, r.Addr().String(), way, requests, "timeout=500", "max=1000000")
	}
}

func TestErrors(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	requests := []request{{workload: echoAssemble, body: text(10)}, {workload: echoAssemble, body: text(5000)}}
	for code := api.CodeUnknownWorkload; code <= api.CodeDeadline; code++ {
		s.Refuse(func(*api.Header) (api.Code, int) { return code, 0 })
		for _, way := range ways {
			replies, st := drive(t, s.Addr().String(), way, requests)
			for _, r := range replies {
				if r.result != int(code) {
					t.Errorf("%s: code %d: %+v", way, code, r)
				}
			}
			if code == api.CodeStale && st.restarts != 16 { // eight for each
				t.Errorf("%s: %d restarts", way, st.restarts)
			}
		}
	}
	s.Refuse(nil)
	for _, way := range ways {
		replies, _ := drive(t, s.Addr().String(), way, []request{
			{workload: 999}, {workload: echoPacket, method: 1001},
		}, "max=1000")
		if replies[0].result != int(api.CodeUnknownWorkload) || replies[1].result != replyTooLarge {
			t.Errorf("%s: %+v", way, replies)
		}
	}
}

// The lambda's verdict comes with its text, also a verdict on one packet of many.
func TestStatuses(t *testing.T) {
	const reason = "not a whole pixel"
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{Seed: 3, Drop: 0.05, Reorder: 0.1})
	for _, failing := range []int{0, 2, 40} {
		for _, id := range []uint32{greyStream, keepStream} {
			w := workloads()[id]
			w.Fail = func(offset int, _ []byte) (string, api.Status) {
				if offset == failing*api.RPCFragment {
					return reason, api.StatusBadRequest
				}
				return "", api.StatusOK
			}
			s.Set(id, w)
		}
		size := (failing+2)*api.RPCFragment - 4
		for _, way := range ways {
			replies, _ := drive(t, s.Addr().String(), way, []request{{workload: greyStream, body: text(size)}, {workload: keepStream, body: text(size)}}, "timeout=60000")
			for _, r := range replies {
				if r.result != 0 || r.status != int(api.StatusBadRequest) || string(r.body) != reason {
					t.Errorf("%s: %+v", way, r)
				}
			}
		}
	}
}

// A revision that goes away between the first packet of a reply and its pulls costs a second attempt.
func TestStaleStartsOver(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	for _, way := range ways {
		var pulls atomic.Int32
		s.Refuse(func(h *api.Header) (api.Code, int) {
			if h.Type == api.TypePull && pulls.Add(1) == 1 {
				return api.CodeStale, 0
			}
			return 0, 0
		})
		replies, st := drive(t, s.Addr().String(), way, []request{{workload: echoPacket, method: 5000}})
		if r := replies[0]; r.result != 0 || string(r.body) != string(text(5000)) || st.restarts != 1 {
			t.Errorf("%s: %+v, %+v", way, r, st)
		}
	}
}

// Once a request may have been executed, the client never makes another of it. While the server says that it was not, the client
// waits and asks again. When it has the answer, it tells the server.
func TestOnce(t *testing.T) {
	for code, want := range map[api.Code]int{
		0: 0, api.CodeBusy: 0, api.CodeStale: int(api.CodeStale), api.CodeTooLarge: int(api.CodeTooLarge),
	} {
		for i, n := range []int{10, 5000} {
			for _, way := range ways {
				s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
				var seen atomic.Int32
				s.Refuse(func(h *api.Header) (api.Code, int) {
					if h.Flags&api.FlagOnce == 0 {
						t.Errorf("%s: a packet of type %d without the flag", way, h.Type)
					}
					if h.Type != api.TypeRequest || seen.Add(1) > 2 {
						return 0, 0
					}
					return code, api.RPCMaxPayload
				})
				replies, st := drive(t, s.Addr().String(), way, []request{{workload: echoAssemble, body: text(n), room: 1}}, "at-most-once=1")
				if replies[0].result != want || st.restarts != 0 {
					t.Errorf("%s, %d bytes, code %d: %+v, %+v", way, n, code, replies[0], st)
				}
				if want == 0 && !rpcserver.Every(time.Millisecond, time.Minute, func() bool { return s.Stats.Released.Load() > 0 }) {
					t.Errorf("%s, %d bytes, code %d: it kept to itself that it has the answer", way, n, code)
				}
				if i == 0 && s.Stats.Padded.Load() == 0 {
					t.Errorf("%s: the reply has no room", way)
				}
			}
		}
	}
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	s.Refuse(func(*api.Header) (api.Code, int) { return api.CodeBusy, 0 })
	timeout := 0
	heard := rpcserver.Every(0, time.Minute, func() bool { // on a busy machine, a call may end before it hears anything
		timeout += 100
		replies, _ := drive(t, s.Addr().String(), "call", []request{{workload: echoAssemble, body: text(10)}}, "at-most-once=1", fmt.Sprint("timeout=", timeout))
		if r := replies[0]; r.result != int(api.CodeBusy) && r.result != deadline {
			t.Errorf("always busy: %+v", r)
		}
		return replies[0].result == int(api.CodeBusy)
	})
	if !heard {
		t.Error("its error does not say that the server is busy")
	}
}

// A server that needs more room says how much, and gets it. The client remembers the length of a method's replies.
func TestRoom(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	s.Refuse(func(h *api.Header) (api.Code, int) {
		if h.Type == api.TypeRequest && h.Method == 1 {
			return api.CodeTooLarge, 1200
		}
		return 0, 0
	})
	replies, st := drive(t, s.Addr().String(), "call", []request{{workload: echoPacket, method: 1}})
	if r := replies[0]; r.result != int(api.CodeTooLarge) || r.need != 1200 || st.restarts != 1 {
		t.Errorf("%+v, %+v", r, st)
	}
	for _, c := range []struct {
		requests []request
		pulls    uint64
	}{
		{[]request{{workload: echoPacket, method: 900}}, 1},
		{[]request{{workload: echoPacket, method: 900}, {workload: echoPacket, method: 900}}, 1},
		{[]request{{workload: echoPacket, method: 900, room: 300}}, 2},
		{[]request{{workload: echoPacket, method: 900, room: 900}}, 0},
	} {
		before := s.Stats.Pulls.Load()
		drive(t, s.Addr().String(), "call", c.requests, "once=1")
		if n := s.Stats.Pulls.Load() - before; n != c.pulls {
			t.Errorf("%+v: %d pulls, want %d", c.requests, n, c.pulls)
		}
	}
}

// Calls end at their deadline, or without one when nothing comes for the time-out. They report the network's error.
func TestDeadlines(t *testing.T) {
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	address := silent.LocalAddr().(*net.UDPAddr).AddrPort()
	// Nobody listens here: a socket that binds to any port of any address gets no port that is taken at another address.
	refusing := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.42"), address.Port())
	const never = "timeout=3600000" // the test would not wait for it
	for _, way := range ways {
		for _, idle := range []bool{false, true} {
			// ask says whether all calls ended with that error, given that many times the time.
			ask := func(to netip.AddrPort, times int, osError syscall.Errno) bool {
				short := time.Duration(times) * 30 * time.Millisecond
				requests, timeout := []request{{workload: 1, deadline: short}, {workload: 1, body: text(10_000), deadline: 2 * short}}, never
				if idle {
					requests, timeout = []request{{workload: 1}, {workload: 1, body: text(10_000)}}, fmt.Sprint("timeout=", times*100)
				}
				replies, _ := drive(t, to.String(), way, requests, timeout)
				all := true
				for _, r := range replies {
					if r.result != deadline || r.osError != 0 && r.osError != int(osError) {
						t.Errorf("%s, %s: %+v", way, timeout, r)
					}
					all = all && r.osError == int(osError)
				}
				return all
			}
			ask(address, 1, 0)
			times := 0
			heard := rpcserver.Every(0, time.Minute, func() bool { // on a busy machine, a call may end before it hears anything
				times++
				return ask(refusing, times, syscall.ECONNREFUSED)
			})
			if !heard {
				t.Errorf("%s, idle: %t: its error does not say that it was refused", way, idle)
			}
		}
	}
}

// An unanswered request is sent again at intervals that double (docs/protocol.md): in a second after 20, 60, 140, 300 and 620 ms; on a
// busy machine, later.
func TestIntervals(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	s.Lose(func(*api.Header) bool { return true })
	for _, way := range ways {
		replies, _ := drive(t, s.Addr().String(), way, []request{{workload: echoPacket, deadline: time.Second}})
		if r := replies[0]; r.result != deadline || r.resent > 5 {
			t.Errorf("%s: %+v", way, r)
		}
	}
}

// Calls that have time left do not end, however often their packets are lost.
func TestPatience(t *testing.T) {
	const tries = 4
	requests := []request{{workload: echoPacket, body: text(100), deadline: time.Minute}, {workload: echoPacket, body: text(200)}}
	for _, way := range ways {
		s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
		seen := map[uint32]int{} // by length
		s.Lose(func(h *api.Header) bool {
			seen[h.MessageLen]++
			return seen[h.MessageLen] < tries
		})
		replies, st := drive(t, s.Addr().String(), way, requests, "timeout=60000")
		for i, r := range replies {
			if r.result != 0 || string(r.body) != string(requests[i].body) || r.resent < tries-1 {
				t.Errorf("%s: %+v, %+v", way, r, st)
			}
		}
	}
}

// With resends off, a lost packet fails its call, and nothing is sent twice.
func TestWithoutResend(t *testing.T) {
	const lost = 1 // the method
	requests := make([]request, 12)
	for i := range requests {
		requests[i] = request{workload: echoPacket, method: 100, deadline: time.Hour}
		if i%4 == 1 {
			requests[i] = request{workload: echoPacket, method: lost, deadline: 200 * time.Millisecond} // enough for several resends
		}
	}
	for _, way := range ways {
		s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
		s.Lose(func(h *api.Header) bool { return h.Method == lost })
		replies, st := drive(t, s.Addr().String(), way, requests, "once=1")
		for i, r := range replies {
			if want := map[bool]int{true: deadline}[requests[i].method == lost]; r.result != want {
				t.Errorf("%s: call %d: %+v", way, i, r)
			}
		}
		if n := s.Stats.Packets.Load(); n > uint64(len(requests)) || st.resent > 0 {
			t.Errorf("%s: %d packets came, %+v", way, n, st)
		}
	}
}

// Thousands of calls in flight on one socket all get their own answers.
func TestManyAtOnce(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{Seed: 5, Drop: 0.01, Reorder: 0.02, Duplicate: 0.02})
	requests := make([]request, 3000)
	for i := range requests {
		requests[i] = request{workload: echoPacket, body: text(i % 1300)}
		if i%100 == 0 {
			requests[i] = request{workload: echoAssemble, body: text(20_000)}
		}
	}
	check(t, s.Addr().String(), requests, "timeout=60000")
}

func TestSpin(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	check(t, s.Addr().String(), sizes(api.RPCMaxPayload)[:40], "spin=1")
}

// Packets for no call, packets that contradict their call, and packets from elsewhere change nothing. Each is counted as such.
func TestForgedResponses(t *testing.T) {
	f, err := rpcserver.StartForger()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, forgery := range rpcserver.Forgeries {
		q := request{workload: 3, method: uint32(i), body: forgery.Body()}
		for _, way := range ways {
			replies, st := drive(t, f.Addr(), way, []request{q}, "once=1", "timeout=60000")
			if r := replies[0]; r.result != 0 || string(r.body) != string(q.body) {
				t.Errorf("%s, %s: %+v", way, forgery.Name, r)
			}
			if stray, malformed := forgery.Counts(); st.stray != stray || st.malformed != malformed {
				t.Errorf("%s, %s: %+v, want %d stray, %d malformed", way, forgery.Name, st, stray, malformed)
			}
		}
	}
}

// A call ends with its answer, even beside a submitted call that is not answered: a spinning client must not go on until that one's end.
func TestCallBesideASilentOne(t *testing.T) {
	const silent = 999
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	s.Lose(func(h *api.Header) bool { return h.Method == silent })
	replies, _ := drive(t, s.Addr().String(), "beside", []request{
		{workload: echoPacket, method: silent, deadline: time.Hour},
		{workload: echoPacket, body: text(9), deadline: time.Hour},
		{workload: echoAssemble, body: text(5000), deadline: time.Hour},
	}, "once=1", "spin=1")
	for i, want := range []int{0, 9, 5000} {
		if r := replies[i]; r.result != 0 || len(r.body) != want {
			t.Errorf("call %d: %+v", i, r)
		}
	}
}
