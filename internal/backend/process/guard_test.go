package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

const manyRuns = 40

// serveLimited serves the fixture packet under a limit of time.
func serveLimited(t *testing.T, limit time.Duration) (*Backend, *rawClient) {
	t.Helper()
	b := newBackend(t, plainHost, shortdir.New(t))
	d := deployment(workload, 1, api.ModePacket, fixture(t, "packet"))
	d.Spec.Limits.Time = api.Duration(limit)
	return b, dial(t, mustDeploy(t, b, d))
}

// wantFaults receives the answers to requests that made the lambda hang, and checks that another request is answered then.
func wantFaults(t *testing.T, c *rawClient, n int) {
	t.Helper()
	for range n {
		h, _ := c.receive()
		if h.Type != api.TypeError || h.Code != uint8(api.CodeLambdaFault) {
			t.Fatalf("got %+v", h)
		}
	}
	if h, p := c.call(workload, methodEcho, []byte("on"), 0); h.Type != api.TypeResponse || string(p) != "on" {
		t.Errorf("after them: %+v %q", h, p)
	}
}

// A run is ended soon after limits.time, not only after the longest time that a spec may allow. These runs would end by themselves
// before that, without a fault.
func TestTimeLimit(t *testing.T) {
	_, c := serveLimited(t, 100*time.Microsecond)
	for range manyRuns {
		c.send(packet(c.header(workload, methodToil, 4), []byte{90, 0, 0, 0}, 0))
	}
	wantFaults(t, c, manyRuns)
}

// A run is not ended for the time of its interrupts. The lambda's own 10 ms stand for the most that soft interrupts take.
func TestInterruptedRun(t *testing.T) {
	_, c := serveLimited(t, 100*time.Microsecond)
	for range manyRuns {
		if h, _ := c.call(workload, methodToil, []byte{1, 0, 0, 0}, 0); h.Type != api.TypeResponse {
			t.Fatalf("got %+v", h)
		}
	}
}

// A request that hung does not run again when it is sent again.
func TestHangingRequestRunsOnce(t *testing.T) {
	_, c := serveLimited(t, time.Second)
	h := c.header(workload, methodHang, 1)
	for range manyRuns {
		c.send(packet(h, []byte("x"), 0))
		h.Flags = api.FlagResend
	}
	wantFaults(t, c, manyRuns)
	if runs := c.count() - 1; runs != 1 {
		t.Errorf("it ran %d times", runs)
	}
}

// The status says what the last fault was.
func TestFaultIsNamed(t *testing.T) {
	b, c := serveLimited(t, 100*time.Microsecond)
	for _, test := range []struct {
		method uint32
		want   string
	}{
		{methodEcho, ""}, {methodCrash, "segmentation fault"}, {methodEcho, "segmentation fault"}, {methodHang, "ran longer than limits.time"},
		{methodDivide, "division by zero"},
	} {
		c.call(workload, test.method, []byte("x"), 0)
		list, err := b.Status(t.Context())
		if err != nil || len(list) != 1 || list[0].Fault != test.want {
			t.Errorf("after method %d: %+v, %v, want %q", test.method, list, err, test.want)
		}
	}
}

// A run that overwrites its stack may crash the process. Its client hears of that at once, the next process serves, and the status
// tells of the death.
func TestSmashedStackIsAFault(t *testing.T) {
	b, c := serveLimited(t, time.Second)
	for i, body := range []string{"x", "further"} {
		pid := pidOf(t, b, workload)
		c.send(packet(c.header(workload, methodSmash, len(body)), []byte(body), 0))
		if i == 0 { // overwriting more may destroy the data of the answer, too
			h, _ := c.receive()
			if h.Type != api.TypeError || h.Code != uint8(api.CodeLambdaFault) || api.Fault(h.MessageLen) != api.FaultCrash {
				t.Errorf("%q: got %+v, want a fault by a crash", body, h)
			}
		}
		eventually(t, "another process serves", func() bool {
			list, err := b.Status(t.Context())
			return err == nil && len(list) == 1 && list[0].Stats.FaultsBy[api.FaultCrash] == uint64(i+1) && pidOf(t, b, workload) != pid
		})
		list, err := b.Status(t.Context())
		if err != nil || len(list) != 1 || list[0].Stats.Faults != uint64(i+1) || !strings.Contains(list[0].Fault, "its process died: signal") {
			t.Errorf("%q: %+v, %v", body, list, err)
		}
		if h, p := c.call(workload, methodEcho, []byte("on"), 0); h.Type != api.TypeResponse || string(p) != "on" {
			t.Errorf("after it: %+v %q", h, p)
		}
	}
}

// resting says whether a thread of a process waits for another: only the watchdog ever does.
func resting(t *testing.T, pid int) bool {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("threads of process %d: %v", pid, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(text, fmt.Appendf(nil, "%d ", unix.SYS_FUTEX)) {
			return true
		}
	}
	return false
}

// The watchdog rests while nothing runs, and wakes.
func TestTimeLimitAfterRest(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root sees what threads wait for")
	}
	b, c := serveLimited(t, 100*time.Microsecond)
	for range 3 {
		eventually(t, "the watchdog rests", func() bool { return resting(t, pidOf(t, b, workload)) })
		c.send(packet(c.header(workload, methodHang, 1), []byte("x"), 0))
		wantFaults(t, c, 1)
	}
}
