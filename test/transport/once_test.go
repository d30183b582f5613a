package transport

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/impair"
)

var le = binary.LittleEndian

// Workloads of the ledger, by the message mode of its spec and by whether client or spec asks for one run.
const (
	askedFor = iota + 1
	byItsSpec
	assembled
)

const ledgerMemory = "limits: {memory: 4MiB}\n"

// bad is the network of the ledger's clients.
var bad = impair.Faults{Seed: 61, Drop: 0.1, Reorder: 0.1, Duplicate: 0.05, Behind: 3}

// fair loses so little that no client is silent for long.
var fair = impair.Faults{Seed: 61, Drop: 0.02, Reorder: 0.1, Duplicate: 0.05, Behind: 3}

// between puts a network between clients and a server.
func between(t *testing.T, to netip.AddrPort, up impair.Faults) *impair.Relay {
	t.Helper()
	down := up
	down.Seed++
	r, err := impair.Start(impair.Config{Listen: "127.0.0.1:0", Server: to, Up: up, Down: down})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// enter makes one entry, checks the answer except for the counts, and returns these.
func enter(t *testing.T, c *lambdanic.Client, req lambdanic.Request, number uint32) (runs, total uint32) {
	t.Helper()
	req.Body = make([]byte, 16)
	le.PutUint32(req.Body, number)
	r, err := c.Call(t.Context(), req)
	if err != nil {
		t.Errorf("entry %d: %v", number, err)
		return 0, 0
	}
	if len(r.Body) != 16 || le.Uint32(r.Body) != number || le.Uint32(r.Body[4:]) != number*2654435761 {
		t.Errorf("entry %d: wrong answer %x", number, r.Body)
		return 0, 0
	}
	return le.Uint32(r.Body[8:]), le.Uint32(r.Body[12:])
}

// enterAll makes n entries, 64 at once, and returns how many answers are of a first run, and how often the lambda ran in all.
func enterAll(t *testing.T, c *lambdanic.Client, req lambdanic.Request, from, n uint32) (first, ran uint32) {
	t.Helper()
	var next, ones, most atomic.Uint32
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for i := next.Add(1); i <= n; i = next.Add(1) {
				runs, total := enter(t, c, req, from+i)
				if runs == 1 {
					ones.Add(1)
				}
				for old := most.Load(); total > old && !most.CompareAndSwap(old, total); old = most.Load() {
				}
			}
		})
	}
	group.Wait()
	return ones.Load(), most.Load()
}

// On a network that loses, repeats and reorders packets, every request is answered, and executed once: where the client asks for it,
// where the spec does, in a packet and as a message. Without either, the same network has some executed twice.
func TestExecutedOnce(t *testing.T) {
	const n = 20000
	plain := artifact(t, "ledger", ledgerMemory)
	spec := artifact(t, "ledger", ledgerMemory+"once: true\n")
	message := artifact(t, "ledger", ledgerMemory+"message: {mode: assemble, max: 1KiB, in_flight: 1024}\n")
	for _, s := range servers(t, plain, spec, message) {
		for _, test := range []struct {
			name    string
			req     lambdanic.Request
			n       uint32
			network impair.Faults
		}{
			// Its client does not say when it has its answer, so this has the NIC's 8,192 records to itself: what the others leave
			// behind would need their room, and an answer that is still wanted may go for it.
			{"by the spec", lambdanic.Request{Workload: byItsSpec}, n / 20, bad},
			{"asked for", lambdanic.Request{Workload: askedFor, Once: true}, n, bad},
			// A message whose client was silent for a second may be forgotten where others need its room. That takes two lost resends
			// in a row, after five that were no use.
			{"a message", lambdanic.Request{Workload: assembled, Once: true}, n / 4, fair},
		} {
			relay := between(t, s.addr(test.req.Workload), test.network)
			c, err := lambdanic.Dial(relay.Addr().String(), lambdanic.WithSockets(4))
			if err != nil {
				t.Fatal(err)
			}
			first, ran := enterAll(t, c, test.req, 0, test.n)
			if first != test.n || ran != test.n {
				t.Errorf("%s, %s: %d of %d answers are of a first run, and it ran %d times", s.name, test.name, first, test.n, ran)
			}
			if test.req.Workload == askedFor {
				if _, again := enterAll(t, c, lambdanic.Request{Workload: askedFor}, n, n/10); again <= ran+n/10 {
					t.Errorf("%s: %d runs of %d requests that may run twice: the network is too good", s.name, again-ran, n/10)
				}
			}
			if r := c.Stats(); r.Resent == 0 {
				t.Errorf("%s, %s: nothing was sent again", s.name, test.name)
			}
			c.Close()
		}
	}
}

// A request on which a lambda failed is not tried again either, and a request that it does not answer stays unanswered.
func TestFailedOnce(t *testing.T) {
	plain := artifact(t, "ledger", ledgerMemory)
	message := artifact(t, "ledger", ledgerMemory+"message: {mode: assemble, max: 1KiB}\n")
	for _, s := range servers(t, plain, message) {
		for workload := uint32(1); workload <= 2; workload++ {
			relay := between(t, s.addr(workload), impair.Faults{Seed: 5, Drop: 0.4})
			c, err := lambdanic.Dial(relay.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			for i := range uint32(40) {
				group.Go(func() {
					req := lambdanic.Request{Workload: workload, Method: 1, Once: true, Body: make([]byte, 16)}
					le.PutUint32(req.Body, i)
					if _, err := c.Call(t.Context(), req); !errors.Is(err, lambdanic.ErrLambdaFault) {
						t.Errorf("%s, workload %d: request %d: %v", s.name, workload, i, err)
					}
				})
			}
			group.Wait()
			if _, ran := enter(t, c, lambdanic.Request{Workload: workload, Once: true}, 99); ran != 41 {
				t.Errorf("%s, workload %d: ran %d times, want 41", s.name, workload, ran)
			}
			c.Close()
		}
	}
}
