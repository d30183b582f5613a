package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/impair"
)

// patience ends tests that hang: no test passes or fails by how long anything takes on a busy machine.
const patience = time.Minute

// Methods of the lambda probe.
const methodStamp = 1

// stamp has probe answer a message, and checks that it is the same but for the stamps on both ends.
func stamp(t *testing.T, c *lambdanic.Client, body []byte) {
	t.Helper()
	r, err := c.Call(t.Context(), lambdanic.Request{Workload: 1, Method: methodStamp, Body: body})
	if err != nil {
		t.Errorf("%d bytes: %v", len(body), err)
		return
	}
	if len(r.Body) != len(body) || !bytes.Equal(r.Body[8:len(body)-4], body[8:len(body)-4]) {
		t.Errorf("%d bytes: wrong reply of %d bytes", len(body), len(r.Body))
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b)
	return b
}

func dialTo(t *testing.T, to netip.AddrPort, opts ...lambdanic.Option) *lambdanic.Client {
	t.Helper()
	c, err := lambdanic.Dial(to.String(), append([]lambdanic.Option{lambdanic.WithTimeout(patience)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Requests and replies of 16 MiB arrive whole where packets are lost, beside short ones.
func TestLargeMessages(t *testing.T) {
	a := artifact(t, "probe", "message: {mode: assemble, max: 16MiB, in_flight: 4}\nlimits: {memory: 128MiB}\n")
	for _, s := range servers(t, a) {
		relay := between(t, s.addr(1), impair.Faults{Seed: 3, Drop: 0.02, Reorder: 0.02, Duplicate: 0.01})
		c := dialTo(t, relay.Addr())
		var group sync.WaitGroup
		group.Go(func() { stamp(t, c, random(16<<20)) })
		group.Go(func() {
			for n := range 20 {
				stamp(t, c, random(5000*(n+1)))
			}
		})
		group.Wait()
		if relay.Counts(impair.ToServer).Dropped == 0 || relay.Counts(impair.ToClient).Dropped == 0 {
			t.Errorf("%s: the network was good", s.name)
		}
	}
}

// A way that takes shorter packets than others, from the beginning or since the client is connected.
func TestShortPackets(t *testing.T) {
	s := onNIC(t, artifact(t, "probe", "message: {mode: assemble, max: 1MiB, in_flight: 4}\nlimits: {memory: 16MiB}\n"))
	l, err := netlink.LinkByName(s.nic.HostEnd())
	if err != nil {
		t.Fatal(err)
	}
	early := dialTo(t, s.addr(1))
	stamp(t, early, random(20000))
	for _, mtu := range []int{1280, 800} {
		if err := netlink.LinkSetMTU(l, mtu); err != nil {
			t.Fatal(err)
		}
		stamp(t, early, random(1300))
		stamp(t, early, random(20000))
		stamp(t, dialTo(t, s.addr(1)), random(20000))
	}
	if n := early.Stats().Restarts; n == 0 {
		t.Error("the connected client noticed nothing")
	}
}

// A reader that gives some bytes and then waits.
type stuck struct {
	left  int
	until <-chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	if s.left == 0 {
		<-s.until
		return 0, io.ErrUnexpectedEOF
	}
	n := min(s.left, len(p))
	s.left -= n
	return n, nil
}

// A call that is cancelled leaves nothing behind: its records serve others at once, not when its message times out.
func TestCancelled(t *testing.T) {
	const records = 4
	a := artifact(t, "probe", "message: {mode: assemble, max: 1MiB, in_flight: 4, timeout: 10m}\nlimits: {memory: 16MiB}\n")
	for _, s := range servers(t, a) {
		c := dialTo(t, s.addr(1))
		busy := func() bool {
			_, err := c.Call(t.Context(), lambdanic.Request{Workload: 1, Method: methodStamp, Body: random(3000)})
			if err != nil && !errors.Is(err, lambdanic.ErrBusy) {
				t.Fatalf("%s: %v", s.name, err)
			}
			return err != nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, records)
		for range records {
			go func() {
				_, err := c.CallStream(ctx, lambdanic.Request{Workload: 1}, &stuck{300_000, ctx.Done()}, 1<<20, io.Discard)
				ended <- err
			}()
		}
		eventually(t, s.name+": all records are taken", busy)
		cancel()
		for range records {
			if err := <-ended; err == nil {
				t.Errorf("%s: a call that was cancelled ended well", s.name)
			}
		}
		eventually(t, s.name+": the records are free", func() bool { return !busy() })
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
