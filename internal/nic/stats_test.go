package nic

import (
	"strings"
	"sync"
	"testing"
)

// Whoever reads the counters while the NIC closes gets them, or hears that it is closed.
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
