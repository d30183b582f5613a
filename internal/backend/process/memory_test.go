package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

const vast = 16 << 20 // bytes of each kind in the fixture of that name

// resident is how many bytes a process has in memory.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nRss:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// A lambda's memory is allocated before its runs, so that they are not charged for the kernel's time: all kinds of variables once it
// serves, also those of the next revision, and its heap before its first run.
func TestMemoryIsThereBeforeARun(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	d := deployment(workload, 1, api.ModePacket, fixture(t, "vast", fmt.Sprint("VAST=", vast)))
	d.Spec.Limits.Memory = 4 * vast
	c := dial(t, mustDeploy(t, b, d))
	pid, last := pidOf(t, b, workload), 0
	grown := func(what string, want int) {
		t.Helper()
		now := resident(t, pid)
		if now-last < want {
			t.Errorf("%s: %d bytes more in memory, want at least %d", what, now-last, want)
		}
		last = now
	}
	grown("loaded", 3*vast)
	for range 2 {
		if h, _ := c.call(workload, 0, []byte("x"), 0); h.Type != api.TypeResponse {
			t.Fatalf("got %+v", h)
		}
		grown("ran", vast)
		d.Revision++
		mustDeploy(t, b, d)
		grown("loaded again", 3*vast)
	}
}

// So is the whole buffer of a message, which the lambda may fill with the reply.
func TestMessageIsThereBeforeARun(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	d := deployment(workload, 1, api.ModeAssemble, fixture(t, "assemble", fmt.Sprint("LAMBDA_MESSAGE_MAX=", vast)))
	d.Spec.Message.Max = vast
	d.Spec.Limits.Memory = 8 * vast
	c := dial(t, mustDeploy(t, b, d))
	before := resident(t, pidOf(t, b, workload))
	if h, _ := c.call(workload, 0, []byte("x"), 0); h.Type != api.TypeResponse {
		t.Fatalf("got %+v", h)
	}
	if now := resident(t, pidOf(t, b, workload)); now-before < vast {
		t.Errorf("%d bytes more in memory, want at least %d", now-before, vast)
	}
}
