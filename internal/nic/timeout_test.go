package nic

import (
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// A service that does not answer: the client is told, once, and not too early.
func TestTimeout(t *testing.T) {
	n := callNIC(t)
	const timeout = 40 * time.Millisecond
	deployKV(t, n, 1, newFake(t, n.HostAddr()).addr(), timeout)
	c := dialNIC(t, n.Addr())
	for range 20 {
		began := time.Now()
		c.expectError(c.send(methodGet, []byte("key"), 64), api.CodeTimeout)
		took := time.Since(began)
		if took < timeout {
			t.Errorf("timed out after %v, before the %v that the service has", took, timeout)
		}
	}
	if got := counters(t, n).Timeouts; got != 20 {
		t.Errorf("%d time-outs counted, want 20", got)
	}
}
