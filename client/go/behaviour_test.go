package lambdanic_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/impair"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// patience ends tests that hang: no test passes or fails by how long anything takes on a busy machine.
const patience = time.Minute

func dial(t testing.TB, s *rpcserver.Server, opts ...lambdanic.Option) *lambdanic.Client {
	t.Helper()
	c, err := lambdanic.Dial(s.Addr().String(), append([]lambdanic.Option{lambdanic.WithTimeout(patience)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestErrors(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	sentinels := []error{
		lambdanic.ErrUnknownWorkload, lambdanic.ErrOverQuota, lambdanic.ErrBadTag, lambdanic.ErrMalformed, lambdanic.ErrLambdaFault,
		lambdanic.ErrTooLarge, lambdanic.ErrBusy, lambdanic.ErrServiceTimeout, lambdanic.ErrUnreachable, lambdanic.ErrStale,
		lambdanic.ErrTooLate,
	}
	for i, sentinel := range sentinels {
		s.Refuse(func(*api.Header) (api.Code, int) { return api.Code(i + 1), 0 })
		for _, c := range callers(t, s.Addr().String()) {
			for _, n := range []int{10, 5000} {
				_, err := c.call(t.Context(), lambdanic.Request{Workload: echoAssemble, Body: text(n)})
				if !errors.Is(err, sentinel) || errors.Is(err, sentinels[(i+1)%len(sentinels)]) {
					t.Errorf("%s: code %d: %v", c.name, i+1, err)
				}
			}
		}
	}
	s.Refuse(nil)
	for _, c := range callers(t, s.Addr().String(), lambdanic.WithMaxReply(1000)) {
		if _, err := c.call(t.Context(), lambdanic.Request{Workload: 999}); !errors.Is(err, lambdanic.ErrUnknownWorkload) {
			t.Errorf("%s: unknown workload: %v", c.name, err)
		}
		if _, err := c.call(t.Context(), lambdanic.Request{Workload: echoPacket, Method: 1001}); !errors.Is(err, lambdanic.ErrReplyTooLarge) {
			t.Errorf("%s: long reply: %v", c.name, err)
		}
		if _, err := c.call(t.Context(), lambdanic.Request{Workload: echoAssemble, Body: make([]byte, api.MaxMessage+1)}); !errors.Is(err, lambdanic.ErrRequestTooLarge) {
			t.Errorf("%s: long request: %v", c.name, err)
		}
	}
}

// A revision that goes away between the first packet of a reply and its pulls costs a second attempt.
func TestStaleStartsOver(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	for _, c := range callers(t, s.Addr().String()) {
		var pulls atomic.Int32
		s.Refuse(func(h *api.Header) (api.Code, int) {
			if h.Type == api.TypePull && pulls.Add(1) == 1 {
				return api.CodeStale, 0
			}
			return 0, 0
		})
		req := lambdanic.Request{Workload: echoPacket, Method: 5000, Body: text(10)}
		if c.name != "stream" {
			check(t, c, req)
		} else if _, err := c.call(t.Context(), req); err != nil && !errors.Is(err, lambdanic.ErrStale) { // packet 0 may be written already
			t.Errorf("stream: %v", err)
		}
	}
}

// Once a request may have been executed, the client never makes another of it. While the server says that it was not, the client waits and
// asks again. When it has the answer, it says so.
func TestOnce(t *testing.T) {
	for code, want := range map[api.Code]error{
		0: nil, api.CodeBusy: nil, api.CodeStale: lambdanic.ErrStale, api.CodeTooLarge: lambdanic.ErrTooLarge,
	} {
		for i, n := range []int{10, 5000} {
			for way := range 4 {
				s := serve(t, "127.0.0.1:0", rpcserver.Faults{}) // of its own: packets of a call that was refused may come late
				c := callers(t, s.Addr().String())[way]
				var seen, others atomic.Int32
				var id atomic.Uint64
				s.Refuse(func(h *api.Header) (api.Code, int) {
					if h.Flags&api.FlagOnce == 0 {
						t.Errorf("%s: a packet of type %d without the flag", c.name, h.Type)
					}
					if h.Type != api.TypeRequest {
						return 0, 0
					}
					if !id.CompareAndSwap(0, h.Request) && id.Load() != h.Request {
						others.Add(1)
					}
					if seen.Add(1) > 2 {
						return 0, 0
					}
					return code, api.RPCMaxPayload
				})
				before, padded := s.Stats.Released.Load(), s.Stats.Padded.Load()
				_, err := c.call(t.Context(), lambdanic.Request{Workload: echoAssemble, Body: text(n), Once: true, ReplyRoom: 1})
				if !errors.Is(err, want) || others.Load() > 0 {
					t.Errorf("%s, %d bytes, code %d: %v, and %d packets of another request", c.name, n, code, err, others.Load())
				}
				if want == nil && !rpcserver.Every(time.Millisecond, patience, func() bool { return s.Stats.Released.Load() > before }) {
					t.Errorf("%s, %d bytes, code %d: it kept to itself that it has the answer", c.name, n, code)
				}
				if i == 0 && s.Stats.Padded.Load() == padded {
					t.Errorf("%s: the reply has no room", c.name)
				}
			}
		}
	}
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	s.Refuse(func(*api.Header) (api.Code, int) { return api.CodeBusy, 0 })
	for _, c := range callers(t, s.Addr().String()) {
		timeout := time.Duration(0)
		heard := rpcserver.Every(0, patience, func() bool { // on a busy machine, a call may end before it hears anything
			timeout += 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := c.call(ctx, lambdanic.Request{Workload: echoAssemble, Body: text(10), Once: true})
			if !errors.Is(err, lambdanic.ErrDeadlineExceeded) {
				t.Errorf("%s: always busy: %v", c.name, err)
			}
			return errors.Is(err, lambdanic.ErrBusy)
		})
		if !heard {
			t.Fatalf("%s: its error does not say that the server is busy", c.name)
		}
	}
}

func TestRoomIsLearned(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	s.Refuse(func(h *api.Header) (api.Code, int) {
		if h.Type == api.TypeRequest && h.Method == 1 {
			return api.CodeTooLarge, 1200
		}
		return 0, 0
	})
	c := dial(t, s, lambdanic.WithoutResend()) // a resent pull would be counted
	for _, call := range []struct {
		reply, room int
		pulls       uint64
	}{{900, 0, 1}, {900, 0, 1}, {900, 300, 3}, {900, 900, 3}, {300, 1, 302}} {
		if _, err := c.Call(t.Context(), lambdanic.Request{Workload: echoPacket, Method: uint32(call.reply), ReplyRoom: call.room}); err != nil {
			t.Fatal(err)
		}
		if n := s.Stats.Pulls.Load(); n != call.pulls {
			t.Errorf("reply of %d bytes, room %d: %d pulls so far, want %d", call.reply, call.room, n, call.pulls)
		}
	}
	if _, err := c.Call(t.Context(), lambdanic.Request{Workload: echoPacket, Method: 1}); !errors.Is(err, lambdanic.ErrTooLarge) {
		t.Errorf("needed room was given in vain: %v", err)
	}
	if n := c.Stats().Restarts; n != 1 {
		t.Errorf("%d restarts, want one with the room that the error named", n)
	}
}

func TestDeadline(t *testing.T) {
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, body := range []int{0, 10_000} {
		long := callers(t, silent.LocalAddr().String())
		for i, c := range callers(t, silent.LocalAddr().String(), lambdanic.WithTimeout(100*time.Millisecond)) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			_, err := c.call(ctx, lambdanic.Request{Workload: 1, Body: text(body)})
			cancel()
			if !errors.Is(err, lambdanic.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: context's deadline: %v", c.name, err)
			}
			if _, err = c.call(t.Context(), lambdanic.Request{Workload: 1, Body: text(body)}); !errors.Is(err, lambdanic.ErrDeadlineExceeded) {
				t.Errorf("%s: time-out: %v", c.name, err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(5*time.Millisecond, cancel)
			if _, err = long[i].call(ctx, lambdanic.Request{Workload: 1, Body: text(body)}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: cancellation: %v", c.name, err)
			}
		}
	}
}

// overdue is a context that ends at a time and wakes nobody: a call that waits notices late, as it does on a busy machine.
type overdue struct {
	context.Context
	end time.Time
}

func (o overdue) Err() error {
	if time.Now().After(o.end) {
		return context.DeadlineExceeded
	}
	return nil
}

// Once a call's time is over, nothing is sent again, however late the caller notices.
func TestNothingIsSentLate(t *testing.T) {
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	client, err := lambdanic.Dial(silent.LocalAddr().String(), lambdanic.WithTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := lambdanic.DialConn(silent.LocalAddr().String(), lambdanic.WithTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, call := range []func(context.Context, lambdanic.Request) (lambdanic.Response, error){client.Call, streamCall(client), conn.Call} {
		ctx := overdue{t.Context(), time.Now().Add(10 * time.Millisecond)} // packets are sent again after 20
		if _, err := call(ctx, lambdanic.Request{Workload: 1}); !errors.Is(err, lambdanic.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
	if n := client.Stats().Resent + conn.Stats().Resent; n > 0 {
		t.Errorf("%d packets were sent again", n)
	}
}

// A call waits for a server that is not up yet.
func TestServerComesUp(t *testing.T) {
	// Nothing else listens here: a socket bound to any port of any address does not get a port that is taken at another address.
	address := fmt.Sprintf("127.0.0.42:%d", serve(t, "127.0.0.1:0", rpcserver.Faults{}).Addr().Port())
	for _, c := range callers(t, address, lambdanic.WithTimeout(50*time.Millisecond)) {
		if _, err := c.call(t.Context(), lambdanic.Request{Workload: echoPacket}); !errors.Is(err, lambdanic.ErrDeadlineExceeded) {
			t.Errorf("%s: nobody there: %v", c.name, err)
		}
	}
	started := make(chan *rpcserver.Server)
	time.AfterFunc(30*time.Millisecond, func() {
		s, err := rpcserver.Start(address, workloads(7), rpcserver.Faults{})
		if err != nil {
			t.Error(err)
		}
		started <- s
	})
	for _, c := range callers(t, address) {
		check(t, c, lambdanic.Request{Workload: echoPacket, Body: text(9)})
	}
	if s := <-started; s != nil {
		s.Close()
	}
}

// With resends off, a lost packet fails its call, and nothing is sent twice.
func TestWithoutResend(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	faults := impair.Faults{Seed: 2, Drop: 0.3}
	r, err := impair.Start(impair.Config{Listen: "127.0.0.1:0", Server: s.Addr(), Up: faults, Down: faults})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dropped := func() uint64 { return r.Counts(impair.ToServer).Dropped + r.Counts(impair.ToClient).Dropped }
	for _, c := range callers(t, r.Addr().String(), lambdanic.WithoutResend()) {
		lost := 0
		for range 20 {
			ctx, cancel := context.WithCancelCause(t.Context())
			before, done := dropped(), make(chan struct{})
			go func() { // a call's time is over some intervals after its packet is lost, so that it could be sent again
				defer close(done)
				for dropped() == before && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
				cancel(context.DeadlineExceeded)
			}()
			_, err := c.call(ctx, lambdanic.Request{Workload: echoPacket, Body: text(100)})
			cancel(nil)
			<-done
			gone := dropped() > before
			if gone {
				lost++
			}
			if gone != errors.Is(err, lambdanic.ErrDeadlineExceeded) || !gone && err != nil {
				t.Errorf("%s: the packet was lost: %t, the call says: %v", c.name, gone, err)
			}
		}
		if lost == 0 || lost == 20 {
			t.Errorf("%s: %d of 20 packets lost", c.name, lost)
		}
	}
	if n := s.Stats.Resends.Load(); n > 0 {
		t.Errorf("%d resends", n)
	}
}

func TestManyAtOnce(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{Seed: 5, Drop: 0.02, Reorder: 0.05, Duplicate: 0.05})
	c := dial(t, s, lambdanic.WithSockets(2))
	var wg sync.WaitGroup
	for i := range 5000 {
		wg.Go(func() {
			req := lambdanic.Request{Workload: uint32(i%3 + 1), Body: text(i % 1300)}
			if i%50 == 0 && i%3 > 0 {
				req.Body = text(20_000)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := c.Call(ctx, req)
			if err != nil || string(r.Body) != string(req.Body) {
				t.Errorf("call %d: %d bytes, %v", i, len(r.Body), err)
			}
		})
	}
	wg.Wait()
	if st := c.Stats(); st.Calls != 5000 || st.Malformed > 0 {
		t.Errorf("%+v", st)
	}
}

// Packets for no call, packets that contradict their call, and packets from elsewhere change nothing. Each is counted as what it is.
func TestForgedResponses(t *testing.T) {
	f, err := rpcserver.StartForger()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, forgery := range rpcserver.Forgeries {
		c, err := lambdanic.Dial(f.Addr(), lambdanic.WithoutResend(), lambdanic.WithTimeout(patience))
		if err != nil {
			t.Fatal(err)
		}
		k, err := lambdanic.DialConn(f.Addr(), lambdanic.WithoutResend(), lambdanic.WithTimeout(patience))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []caller{{"client", c.Call}, {"conn", k.Call}} {
			r, err := c.call(t.Context(), lambdanic.Request{Workload: 3, Method: uint32(i), Body: forgery.Body()})
			if err != nil || string(r.Body) != string(forgery.Body()) {
				t.Errorf("%s, %s: %q, %v", c.name, forgery.Name, r.Body, err)
			}
		}
		for _, st := range []lambdanic.Stats{c.Stats(), k.Stats()} {
			if stray, malformed := forgery.Counts(); st.Stray != stray || st.Malformed != malformed {
				t.Errorf("%s: %+v, want %d stray, %d malformed", forgery.Name, st, stray, malformed)
			}
		}
		c.Close()
		k.Close()
	}
}

func TestCloseEndsCalls(t *testing.T) {
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	before := runtime.NumGoroutine()
	c, err := lambdanic.Dial(silent.LocalAddr().String(), lambdanic.WithSockets(3), lambdanic.WithTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan error)
	for range 100 {
		go func() {
			_, err := c.Call(t.Context(), lambdanic.Request{Workload: 1})
			results <- err
		}()
	}
	if !rpcserver.Every(time.Millisecond, patience, func() bool { return c.Stats().Sent >= 100 }) {
		t.Fatal("calls did not start")
	}
	c.Close()
	for range 100 {
		if err := <-results; !errors.Is(err, lambdanic.ErrClosed) {
			t.Fatal(err)
		}
	}
	if _, err := c.Call(t.Context(), lambdanic.Request{Workload: 1}); !errors.Is(err, lambdanic.ErrClosed) {
		t.Error(err)
	}
	if !rpcserver.Every(time.Millisecond, patience, func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

func TestMessagesAreReleased(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	for _, c := range callers(t, s.Addr().String()) {
		for _, w := range []uint32{echoAssemble, greyStream, keepStream} {
			check(t, c, lambdanic.Request{Workload: w, Body: text(100_000)})
		}
	}
	if !rpcserver.Every(time.Millisecond, patience, func() bool { return s.Records() == 0 }) {
		t.Errorf("%d messages are kept", s.Records())
	}
}

func TestDialRefusesNonsense(t *testing.T) {
	for _, addr := range []string{"", "nowhere.invalid", "127.0.0.1:none", "[::1"} {
		if c, err := lambdanic.Dial(addr); err == nil {
			c.Close()
			t.Errorf("%q was accepted", addr)
		}
		if c, err := lambdanic.DialConn(addr); err == nil {
			c.Close()
			t.Errorf("%q was accepted", addr)
		}
	}
}

func ExampleClient_Call() {
	server, err := rpcserver.Start("127.0.0.1:0", workloads(1), rpcserver.Faults{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	client, err := lambdanic.Dial(server.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reply, err := client.Call(ctx, lambdanic.Request{Workload: 1, Body: []byte("hello")})
	switch {
	case errors.Is(err, lambdanic.ErrBusy):
		fmt.Println("later")
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Printf("revision %d: %s\n", reply.Revision, reply.Body)
	}
	// Output: revision 1: hello
}

func ExampleConn() {
	server, err := rpcserver.Start("127.0.0.1:0", workloads(1), rpcserver.Faults{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	runtime.LockOSThread() // fastest: no other goroutine runs on this thread
	defer runtime.UnlockOSThread()
	conn, err := lambdanic.DialConn(server.Addr().String(), lambdanic.WithTimeout(time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for _, word := range []string{"one", "two"} {
		reply, err := conn.Call(context.Background(), lambdanic.Request{Workload: 1, Body: []byte(word)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(reply.Body))
	}
	// Output:
	// one
	// two
}

// A client sends only what it is granted, however little, and says in each packet how long it still waits.
func TestGrants(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{Seed: 9, Drop: 0.03})
	w := workloads(7)[echoAssemble]
	last := map[uint64]uint32{} // by request
	s.Refuse(func(h *api.Header) (api.Code, int) {
		if before, ok := last[h.Request]; h.DeadlineUS == 0 || ok && before < h.DeadlineUS {
			t.Errorf("%d µs are left, before it were %d", h.DeadlineUS, before)
		}
		last[h.Request] = h.DeadlineUS
		return 0, 0
	})
	for _, grant := range []int{1, 3, 32, 256} {
		w.Grant = grant
		s.Set(echoAssemble, w)
		for _, c := range callers(t, s.Addr().String()) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			req := lambdanic.Request{Workload: echoAssemble, Body: text(300 * api.RPCFragment)}
			if r, err := c.call(ctx, req); err != nil || string(r.Body) != string(req.Body) {
				t.Errorf("%s: grants of %d: %v", c.name, grant, err)
			}
			cancel()
			if n := s.Stats.Ungranted.Load(); n > 0 {
				t.Fatalf("%s: grants of %d: %d packets were not granted", c.name, grant, n)
			}
		}
	}
}
