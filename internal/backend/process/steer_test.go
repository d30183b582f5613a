package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// While a process is replaced, it finishes the messages that it began, and the new one gets all other packets. The kernel alone would
// send about half of both to the wrong process.
func TestReplaceSplitsNoMessage(t *testing.T) {
	was := drainTime
	drainTime = patience
	t.Cleanup(func() { drainTime = was })
	for _, threads := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d workers", threads), func(t *testing.T) { replaceUnderMessages(t, threads) })
	}
}

func replaceUnderMessages(t *testing.T, threads int) {
	b := newBackend(t, plainHost, shortdir.New(t))
	b.cfg.Threads = threads
	d := deployment(workload, 1, api.ModeAssemble, fixture(t, "assemble"))
	d.Spec.Message.InFlight = 64
	endpoint := mustDeploy(t, b, d)
	const clients = 30
	var half [clients]*rawClient
	var rest [clients][]byte
	for i := range half {
		c := dial(t, endpoint)
		c.next = uint64(i+1) * 7919
		message := c.fragments(0, randomBytes(2000), 1000, 0, api.FlagAckWanted)
		c.send(message[0])
		c.receive()
		half[i], rest[i] = c, message[1]
	}
	d.Revision, d.Spec.Limits.Memory = 2, 2<<20
	deployed := make(chan error, 1)
	go func() { deployed <- b.Deploy(t.Context(), d) }()
	c := dial(t, endpoint)
	eventually(t, "the next process serves", func() bool { // packets may be lost during the switch; the next look takes late ones
		c.send(packet(c.header(workload, 0, 3), []byte("abc"), 0))
		h, _, err := c.tryReceive(20 * time.Millisecond)
		return err == nil && h.Type == api.TypeResponse && h.Revision == 2
	})
	for range clients {
		c := dial(t, endpoint)
		if h, p := c.call(workload, 0, []byte("abc"), 0); h.Revision != 2 || string(p) != "cba" {
			t.Fatalf("new message: %+v %q", h, p)
		}
	}
	for i, c := range half {
		c.send(rest[i])
		if h, _ := c.receive(); h.Type != api.TypeResponse || h.Revision != 1 {
			t.Fatalf("message %d: %+v", i, h)
		}
	}
	if err := <-deployed; err != nil {
		t.Fatal(err)
	}
	for range clients {
		if h, _ := dial(t, endpoint).call(workload, 0, []byte("abc"), 0); h.Revision != 2 {
			t.Fatalf("after the replacement: %+v", h)
		}
	}
}
