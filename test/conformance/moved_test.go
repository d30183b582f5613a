package conformance

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// A move moves a function between two servers, while a client believes that it is at the first.
type move struct {
	t     *testing.T
	d     *driver
	known *directory
	here  *rpcserver.Server
	there *rpcserver.Server
	lost  atomic.Int32 // packets to the old place
}

// misled opens the driver's client, and moves the function once that client has called it.
func misled(t *testing.T, d *driver, s settings) *move {
	t.Helper()
	m := &move{t: t, d: d, here: serve(t, "127.0.0.1:0", rpcserver.Faults{}), there: serve(t, "[::1]:0", rpcserver.Faults{})}
	m.known = &directory{function: api.Function{Name: "echo", Workload: echoAssemble, Endpoint: m.here.Addr()}}
	s.Gateway, _ = gateways(t, m.known)
	d.open(s)
	m.call(10, call{}, "")
	if n := m.known.move(echoAssemble, m.there.Addr()); n != 1 {
		t.Errorf("the gateway was asked %d times for a function that nobody has called before", n)
	}
	return m
}

// silent has the old place ignore so many packets.
func (m *move) silent(packets int32) {
	m.here.Lose(func(*api.Header) bool { return m.lost.Add(1) <= packets })
}

// call makes a call with n bytes, and compares its error or its answer.
func (m *move) call(n int, c call, want string) outcome {
	m.t.Helper()
	c.Name, c.Body = "echo", text(n)
	o := m.d.call(false, c)[0]
	if o.Error != want || want == "" && !bytes.Equal(o.Body, c.Body) {
		m.t.Errorf("%d bytes, once %t: error %q (%s), want %q", n, c.Once, o.Error, o.Text, want)
	}
	return o
}

func (m *move) asked(want int) {
	m.t.Helper()
	if n := m.known.move(echoAssemble, m.there.Addr()); n != want {
		m.t.Errorf("the gateway was asked %d times, want %d", n, want)
	}
}

const forever = 1 << 30

// longEnough is how many packets of a call with n bytes the old place has to ignore until the client has asked.
func longEnough(n int) int32 { return int32(api.Fragments(n, api.RPCFragment)) * (api.RPCAskAfter + 2) }

// A call goes on where the function is now, and the next call begins there.
func TestMovedFromSilence(t *testing.T) {
	for _, n := range []int{10, 5000, 200_000} {
		each(t, func(t *testing.T, d *driver) {
			m := misled(t, d, settings{})
			m.silent(forever)
			o := m.call(n, call{}, "")
			m.asked(1)
			if o.Resends < api.RPCAskAfter || m.lost.Load() <= api.RPCAskAfter {
				t.Errorf("%d bytes: it asked after %d resends, and %d packets in all", n, o.Resends, m.lost.Load())
			}
			before := m.lost.Load()
			m.call(n, call{}, "")
			m.asked(0)
			if m.lost.Load() != before {
				t.Errorf("%d bytes: the next call sent to the old place", n)
			}
			d.close()
		})
	}
}

// Where packets are refused, a call waits for no resends.
func TestMovedFromRefusal(t *testing.T) {
	for _, n := range []int{10, 5000} {
		each(t, func(t *testing.T, d *driver) {
			atOnce := rpcserver.Every(0, time.Minute, func() bool { // on a busy machine, resends may come first
				m := misled(t, d, settings{})
				m.here.Close()
				o := m.call(n, call{}, "")
				m.asked(1)
				d.close()
				return o.Resends < api.RPCAskAfter
			})
			if !atOnce {
				t.Errorf("%d bytes: it resent as to a silent place", n)
			}
		})
	}
}

// A request that may be executed only once goes nowhere else: neither from a silent place, which may have executed it, nor after a refusal, which
// does not say which packet it is about. The same holds for a packet that is sent only once.
func TestMovedOnce(t *testing.T) {
	for _, c := range []struct {
		name          string
		refuses, once bool
	}{{"silent", false, true}, {"refuses", true, true}, {"refuses, without resend", true, false}} {
		for _, n := range []int{10, 5000} {
			each(t, func(t *testing.T, d *driver) {
				timeout := 500
				tried := rpcserver.Every(0, time.Minute, func() bool { // on a busy machine, a call may end early
					timeout *= 2
					m := misled(t, d, settings{WithoutResend: !c.once})
					m.silent(forever)
					if c.refuses {
						m.here.Close()
					}
					m.call(n, call{Once: c.once, DeadlineUS: int64(timeout) * 1000}, "deadline exceeded")
					m.asked(0)
					if n := m.there.Stats.Packets.Load(); n != 0 {
						t.Errorf("%s: %d packets went to the new place", c.name, n)
					}
					m.call(n, call{Once: c.once}, "") // the next call asks
					m.asked(1)
					d.close()
					return c.refuses || m.lost.Load() > longEnough(n)
				})
				if !tried {
					t.Errorf("%s: no call resent as often as others do before they ask", c.name)
				}
			})
		}
	}
}

// A directory that is down, or that does not answer at all, harms no call whose server answers in the end.
func TestMovedDirectoryDown(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		for _, n := range []int{10, 5000} {
			each(t, func(t *testing.T, d *driver) {
				m := misled(t, d, settings{})
				down := make(chan struct{})
				m.known.mu.Lock()
				m.known.down = down
				m.known.mu.Unlock()
				if !hangs {
					close(down)
				}
				m.silent(longEnough(n))
				m.call(n, call{}, "")
				m.call(n, call{}, "") // what was known before is not forgotten
				m.asked(1)
				if hangs {
					close(down)
				}
				d.close()
			})
		}
	}
}

// A function that has not moved is asked for once per silence, and the call goes on.
func TestMovedNowhere(t *testing.T) {
	for _, n := range []int{10, 5000} {
		each(t, func(t *testing.T, d *driver) {
			m := misled(t, d, settings{})
			m.known.move(echoAssemble, m.here.Addr())
			m.silent(longEnough(n))
			m.call(n, call{}, "")
			m.asked(1)
			if runs := m.here.Stats.Runs.Load(); runs != 2 {
				t.Errorf("%d bytes: %d runs of two calls: it began another", n, runs)
			}
			d.close()
		})
	}
}

// A packet ends a silence: the next silence has a question of its own.
func TestMovedInSecondSilence(t *testing.T) {
	const n = 5000
	each(t, func(t *testing.T, d *driver) {
		m := misled(t, d, settings{})
		m.known.move(echoAssemble, m.here.Addr())
		first := make(chan int, 1)
		m.here.Lose(func(*api.Header) bool {
			if m.lost.Add(1) != longEnough(n)+1 {
				return true
			}
			first <- m.known.move(echoAssemble, m.there.Addr())
			return false
		})
		m.call(n, call{}, "")
		if asked := <-first; asked != 1 {
			t.Errorf("the gateway was asked %d times in the first silence", asked)
		}
		m.asked(1)
		d.close()
	})
}

// A refusal causes one question: after the next answer, only a silence makes the client ask again.
func TestMovedNowhereAfterRefusal(t *testing.T) {
	const n = 5000
	fragments := int32(api.Fragments(n, api.RPCFragment))
	each(t, func(t *testing.T, d *driver) {
		short := rpcserver.Every(0, time.Minute, func() bool { // on a busy machine, the silence may last
			m := misled(t, d, settings{})
			at := m.here.Addr()
			m.known.move(echoAssemble, at)
			m.here.Close()
			m.known.mu.Lock()
			m.known.first = func() { // the place is back: it takes one packet, and is silent once to each of the others
				m.here = serve(t, at.String(), rpcserver.Faults{})
				m.here.Lose(func(*api.Header) bool { i := m.lost.Add(1); return i > 1 && i <= fragments })
			}
			m.known.mu.Unlock()
			o := m.call(n, call{}, "")
			asked := m.known.move(echoAssemble, at)
			d.close()
			if o.Resends >= int(fragments)*api.RPCAskAfter {
				return false
			}
			if asked != 1 {
				t.Errorf("the gateway was asked %d times for one refusal", asked)
			}
			return true
		})
		if !short {
			t.Error("the silence always lasted too long to tell")
		}
	})
}

// refusedSoFar is how many datagrams on this host came to ports without a listener.
func refusedSoFar(t *testing.T) (n uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	_, counters, _ := strings.Cut(string(text), "\nUdp: ") // the names, and then the values
	_, counters, _ = strings.Cut(counters, "\nUdp: ")
	if _, err := fmt.Sscan(counters, new(uint64), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A refusal that comes while the gateway is asked about an earlier refusal is covered by that question: a silence after the next answer has its
// own question still.
func TestMovedAfterRefusals(t *testing.T) {
	const n = 5000
	each(t, func(t *testing.T, d *driver) {
		m := misled(t, d, settings{})
		at := m.here.Addr()
		m.known.move(echoAssemble, at)
		m.here.Close()
		handled := make(chan struct{})
		answered := false
		again := func() { // all that the client sent before it asked again has to be counted
			probe, err := net.Dial("udp", at.String())
			if err != nil {
				t.Error(err)
				return
			}
			defer probe.Close()
			_, _ = probe.Write((&api.Header{Type: api.TypeRequest, Workload: echoPacket, Count: 1}).Append(nil))
			<-handled
			if m.lost.Load() >= api.RPCAskAfter {
				m.known.function.Endpoint = m.there.Addr()
			}
		}
		m.known.mu.Lock()
		m.known.first = func() {
			before := refusedSoFar(t)
			rpcserver.Every(time.Millisecond, time.Minute, func() bool { return refusedSoFar(t) > before })
			m.here = serve(t, at.String(), rpcserver.Faults{})
			m.here.Lose(func(h *api.Header) bool {
				switch {
				case h.Workload == echoPacket:
					close(handled)
				case h.Index == 0 && !answered:
					answered = true
					return false
				case h.Index == 1 && answered:
					m.lost.Add(1)
				}
				return true
			})
			rpcserver.Every(time.Millisecond, time.Minute, func() bool { return m.here.Stats.Acks.Load() > 0 })
			m.known.first = again
		}
		m.known.mu.Unlock()
		m.call(n, call{DeadlineUS: 20_000_000}, "")
		m.asked(2)
		d.close()
	})
}

// A gateway that hangs is asked in each silence, and given up: the call ends at its deadline.
func TestMovedDirectoryHangs(t *testing.T) {
	const n = 5000
	each(t, func(t *testing.T, d *driver) {
		if strings.HasSuffix(t.Name(), "/go") {
			t.Skip("it gives its gateway five seconds, whatever its calls have, and calls share a question that is under way")
		}
		deadline := 2 * time.Second
		both := rpcserver.Every(0, time.Minute, func() bool { // on a busy machine, a call may end early
			deadline *= 2
			m := misled(t, d, settings{TimeoutMS: 1000})
			gaveUp := make(chan struct{}, 2)
			m.known.mu.Lock()
			m.known.hangs = func(caller context.Context) {
				<-caller.Done()
				gaveUp <- struct{}{}
			}
			m.known.mu.Unlock()
			heard := false
			m.here.Lose(func(*api.Header) bool {
				if heard || len(gaveUp) == 0 {
					return true
				}
				heard = true
				return false
			})
			m.call(n, call{DeadlineUS: deadline.Microseconds()}, "deadline exceeded")
			d.close()
			asked := m.known.move(echoAssemble, m.there.Addr())
			if asked > 2 {
				t.Errorf("the gateway was asked %d times in two silences", asked)
			}
			for range asked {
				<-gaveUp
			}
			return asked == 2
		})
		if !both {
			t.Error("the gateway was not asked in the second silence")
		}
	})
}

// Calls at the same time ask once for all of them.
func TestMovedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *driver) {
		m := misled(t, d, settings{})
		m.silent(forever)
		calls := make([]call, 20)
		for i := range calls {
			calls[i] = call{Name: "echo", Body: text(i + 1)}
		}
		for i, o := range d.call(true, calls...) {
			if o.Error != "" || !bytes.Equal(o.Body, calls[i].Body) {
				t.Errorf("call %d: %+v", i, o)
			}
		}
		m.asked(1)
		d.close()
	})
}
