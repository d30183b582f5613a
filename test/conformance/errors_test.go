package conformance

import (
	"net"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// names are the error codes as docs/protocol.md calls them.
var names = map[api.Code]string{
	api.CodeUnknownWorkload: "unknown workload",
	api.CodeOverQuota:       "over quota",
	api.CodeBadTag:          "bad tag",
	api.CodeMalformed:       "malformed",
	api.CodeLambdaFault:     "lambda fault",
	api.CodeTooLarge:        "too large",
	api.CodeBusy:            "busy",
	api.CodeTimeout:         "time-out",
	api.CodeUnreachable:     "unreachable",
	api.CodeStale:           "stale",
	api.CodeDeadline:        "deadline",
}

// Each error packet is an error of its own type, for requests of one packet and of several.
func TestErrors(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	each(t, func(t *testing.T, d *driver) {
		d.open(settings{Address: s.Addr().String(), MaxReply: 1000})
		for code, name := range names {
			before := d.stats().Restarts
			s.Refuse(func(*api.Header) (api.Code, int) { return code, 0 })
			for _, o := range d.call(true, call{Workload: echoAssemble, Body: text(10)}, call{Workload: echoAssemble, Body: text(5000)}) {
				if o.Error != name {
					t.Errorf("code %d: %+v", code, o)
				}
			}
			if n := d.stats().Restarts - before; code == api.CodeStale && n != 16 || code != api.CodeStale && n != 0 {
				t.Errorf("code %d: %d restarts, want eight of each call where the answer is stale", code, n)
			}
		}
		s.Refuse(nil)
		outcomes := d.call(false, call{Workload: 999}, call{Workload: echoPacket, Method: 1001}, call{Workload: echoPacket, Method: 1000})
		if outcomes[0].Error != "unknown workload" || outcomes[1].Error != "reply too large" || outcomes[2].Error != "" {
			t.Errorf("%+v", outcomes)
		}
		d.close()
	})
}

// A client says why a lambda failed, in the same words as `lambdanic describe`, and of a server that does not say, that it failed.
func TestFaultsAreExplained(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	each(t, func(t *testing.T, d *driver) {
		d.open(settings{Address: s.Addr().String()})
		for _, fault := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 255, 256 + int(api.FaultTime), 1 << 31} {
			s.Refuse(func(*api.Header) (api.Code, int) { return api.CodeLambdaFault, fault })
			want := "failed on this request"
			if why := api.Fault(min(fault, 255)).Meaning(); why != "" {
				want += ": " + why
			}
			want += ": see `lambdanic describe NAME`"
			o := d.call(false, call{Workload: echoPacket, Body: text(10)})[0]
			if o.Error != "lambda fault" || o.Need != 0 || !strings.HasSuffix(o.Text, want) {
				t.Errorf("fault %d: %+v, want %q", fault, o, want)
			}
		}
		s.Refuse(nil)
		d.close()
	})
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
		body := text((failing+2)*api.RPCFragment - 4)
		each(t, func(t *testing.T, d *driver) {
			d.open(settings{Address: s.Addr().String()})
			for _, o := range d.call(true, call{Workload: greyStream, Body: body}, call{Workload: keepStream, Body: body}) {
				if o.Error != "" || o.Status != api.StatusBadRequest || string(o.Body) != reason {
					t.Errorf("%+v", o)
				}
			}
			d.close()
		})
	}
}

// Calls end at their deadline, those without one when nothing comes for the time-out, whether the server is silent or not there.
func TestDeadlines(t *testing.T) {
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	address := silent.LocalAddr().String()
	ask := func() {
		each(t, func(t *testing.T, d *driver) {
			for timeoutMS, calls := range map[int][]call{
				3_600_000: {{Workload: 1, DeadlineUS: 60_000}, {Workload: 1, Body: text(10_000), DeadlineUS: 60_000}}, // no test waits so long
				100:       {{Workload: 1}, {Workload: 1, Body: text(10_000)}},
			} {
				d.open(settings{Address: address, TimeoutMS: timeoutMS})
				for _, o := range d.call(true, calls...) {
					if o.Error != "deadline exceeded" {
						t.Errorf("%d ms: %+v", timeoutMS, o)
					}
				}
				d.close()
			}
		})
	}
	ask()
	silent.Close()
	ask()
}

// Unanswered packets are sent again at intervals that double (docs/protocol.md): in a second after 20, 60, 140, 300 and 620 ms, and
// later by a busy machine.
func TestIntervals(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	s.Lose(func(*api.Header) bool { return true })
	each(t, func(t *testing.T, d *driver) {
		d.open(settings{Address: s.Addr().String()})
		o := d.call(false, call{Workload: echoPacket, DeadlineUS: 1_000_000})[0]
		if st := d.stats(); o.Error != "deadline exceeded" || st.Resent > 5 {
			t.Errorf("%+v, %+v", o, st)
		}
		d.close()
	})
}

// Calls that have time do not end, however often their packets are lost.
func TestPatience(t *testing.T) {
	const tries, minute = 4, 60_000
	each(t, func(t *testing.T, d *driver) {
		s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
		seen := map[uint32]int{} // by length
		s.Lose(func(h *api.Header) bool {
			seen[h.MessageLen]++
			return seen[h.MessageLen] < tries
		})
		d.open(settings{Address: s.Addr().String(), TimeoutMS: minute})
		d.answered(t, true, call{Workload: echoPacket, Body: text(100), DeadlineUS: 1000 * minute}, call{Workload: echoPacket, Body: text(200)})
		if st := d.stats(); st.Resent < 2*(tries-1) {
			t.Errorf("%+v", st)
		}
		d.close()
	})
}
