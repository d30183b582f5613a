package conformance

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// Once a request may have been executed, no client makes another of it; while the server says that it was not, it waits and asks again.
// It says so when it has the answer, and has room for as long a reply as there can be.
func TestOnce(t *testing.T) {
	for _, c := range []struct {
		code api.Code // to the first two packets
		want string
	}{{0, ""}, {api.CodeBusy, ""}, {api.CodeStale, "stale"}, {api.CodeTooLarge, "too large"}} {
		for _, n := range []int{10, 5000} {
			each(t, func(t *testing.T, d *driver) {
				s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
				var seen atomic.Int32
				s.Refuse(func(h *api.Header) (api.Code, int) {
					if h.Flags&api.FlagOnce == 0 {
						t.Errorf("a packet of type %d without the flag", h.Type)
					}
					if h.Type != api.TypeRequest || seen.Add(1) > 2 {
						return 0, 0
					}
					return c.code, api.RPCMaxPayload
				})
				d.open(settings{Address: s.Addr().String()})
				o := d.call(false, call{Workload: echoAssemble, Body: text(n), ReplyRoom: 1, Once: true})[0]
				if st := d.stats(); o.Error != c.want || c.want == "" && len(o.Body) != n || st.Restarts != 0 || st.Calls != 1 {
					t.Errorf("%d bytes, code %d: %+v, %+v", n, c.code, o, st)
				}
				if c.want == "" && !rpcserver.Every(time.Millisecond, time.Minute, func() bool { return s.Stats.Released.Load() > 0 }) {
					t.Errorf("%d bytes, code %d: it kept to itself that it has the answer", n, c.code)
				}
				// Of a longer message the last packet is padded, which may not have come yet, or at all, when the call is refused.
				if (c.want == "" || n == 10) && s.Stats.Padded.Load() == 0 {
					t.Error("the reply has no room")
				}
				d.close()
			})
		}
	}
}

// Where the server is busy until the deadline, the call says that: the request was not executed.
func TestOnceBusy(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	s.Refuse(func(*api.Header) (api.Code, int) { return api.CodeBusy, 0 })
	each(t, func(t *testing.T, d *driver) {
		timeout := 0
		heard := rpcserver.Every(0, time.Minute, func() bool { // on a busy machine, a call may end before it hears anything
			timeout += 200
			d.open(settings{Address: s.Addr().String(), TimeoutMS: timeout})
			o := d.call(false, call{Workload: echoAssemble, Body: text(10), Once: true})[0]
			if d.close(); o.Error != "busy" && o.Error != "deadline exceeded" {
				t.Errorf("%+v", o)
			}
			return o.Error == "busy"
		})
		if !heard {
			t.Error("its error does not say that the server is busy")
		}
	})
}
