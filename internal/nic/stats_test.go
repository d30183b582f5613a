package nic

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// On each CPU, one in 64 runs of the author's function is measured, not the program's other work: in mode assemble, taking in each packet
// of a message, and filling each packet of its reply.
func TestSamplesAreOfRuns(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["assemble"]
	deploy(t, n, version(t, w, 1, assembleSpec))
	const messages, size = 512, 64
	for range messages {
		list := fragments("assemble", methodStamp, randomBytes(5*size), size)
		var h api.Header
		var p []byte
		for _, f := range list {
			h, p = call(t, n, f)
		}
		pullAll(t, n, list[0], h, p)
		call(t, n, done(list[0]))
	}
	stats, err := n.slotStats(slotOf(n, w))
	if err != nil {
		t.Fatal(err)
	}
	const samples = messages / 64
	most := uint64(samples + runtime.NumCPU()) // one more on each CPU whose last 64 runs are not complete
	least := uint64(max(1, samples-runtime.NumCPU()))
	if stats.Requests != messages || stats.Samples > most || stats.Samples < least {
		t.Errorf("%d of %d runs were measured, not %d to %d", stats.Samples, stats.Requests, least, most)
	}
}

// Reading the counters while the NIC closes returns them, or an error that it is closed.
func TestCountersBesideClose(t *testing.T) {
	n, err := Up(t.Context(), testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Counters(); err != nil {
		t.Errorf("while it is open: %v", err)
	}
	const closed = "it is closed"
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				if _, err := n.Counters(); err != nil {
					if !strings.Contains(err.Error(), closed) {
						t.Errorf("while it closes: %v", err)
					}
					return
				}
			}
		})
	}
	shut(t, n)
	readers.Wait()
	if _, err := n.Counters(); err == nil || !strings.Contains(err.Error(), closed) || !strings.Contains(err.Error(), n.Interface()) {
		t.Errorf("after it closed: %v", err)
	}
}
