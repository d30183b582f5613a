package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

// As root, on supported kernels, everything needed is there, and nothing stays behind.
func TestRun(t *testing.T) {
	trial := newTrial()
	leavesNothing(t, trial)
	for _, c := range run(t.Context(), trial) {
		t.Logf("%+v", c)
		if !c.OK && c.Needed {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
		if c.OK != (c.Remedy == "") {
			t.Errorf("%s: a remedy goes with a failure and with nothing else: %+v", c.Name, c)
		}
		if c.Detail == "" {
			t.Errorf("%s: no detail", c.Name)
		}
	}
}

func TestMachine(t *testing.T) {
	for _, tc := range []struct{ release, machine, want string }{
		{"6.18.44", "x86_64", "Linux 6.18.44 on x86_64"},
		{"7.0-rc1", "x86_64", "Linux 7.0-rc1 on x86_64"},
		{"mystery", "x86_64", "Linux mystery on x86_64"},
		{"6.1.0-32-amd64", "x86_64", "Linux 6.1.0-32-amd64 on x86_64; the oldest that is tested is " + kernel.Oldest},
		{"6.18.44", "aarch64", ""},
	} {
		if got, err := checkMachine(tc.release, tc.machine); got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("checkMachine(%q, %q): %q, %v", tc.release, tc.machine, got, err)
		}
	}
}

func TestCgroupRoot(t *testing.T) {
	const hybrid = `24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
33 24 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
40 24 0:35 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	if root, ok := cgroupRoot(hybrid); !ok || root != "/sys/fs/cgroup/unified" {
		t.Errorf("got %q, %v", root, ok)
	}
	if root, ok := cgroupRoot("24 1 254:0 / / rw - ext4 /dev/cgroup2 rw\ngarbage\n - cgroup2 \n"); ok {
		t.Errorf("found %q where there is none", root)
	}
}

func TestVersion(t *testing.T) {
	if line, err := version("echo", "one\ntwo")(t.Context()); err != nil || line != "one" {
		t.Errorf("got %q, %v", line, err)
	}
	if _, err := version("no-such-tool")(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-tool") {
		t.Errorf("an absent tool: %v", err)
	}
}

func TestProbe(t *testing.T) {
	p := probe{name: "x", needed: true, remedy: "buy one"}
	p.try = func(context.Context) (string, error) { return "here", nil }
	if got, want := p.run(t.Context()), (Check{Name: "x", OK: true, Needed: true, Detail: "here"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	p.try = func(context.Context) (string, error) { return "here", errors.New("gone") }
	if got, want := p.run(t.Context()), (Check{Name: "x", Needed: true, Detail: "gone", Remedy: "buy one"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	fails := &kernel.Error{Release: "6.1", Fails: "does not take x", Cause: errors.New("R1")}
	p.try = func(context.Context) (string, error) {
		return "", errors.Join(fmt.Errorf("try x: %w", fails), errors.New("y"))
	}
	if got, want := p.run(t.Context()), (Check{Name: "x", Needed: true, Detail: fails.Detail(), Remedy: kernel.Newer}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Everything that another user may not do has one remedy.
func TestProbeWithoutPermission(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it becomes another user")
	}
	found := make(chan Check)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			t.Error(errno)
		}
		p := probe{name: "x", remedy: "mount one", try: func(context.Context) (string, error) { return "", unix.Access("/proc/1/fd", unix.R_OK) }}
		found <- p.run(context.Background())
	}()
	if c := <-found; c.OK || c.Remedy != asRoot {
		t.Errorf("%+v", c)
	}
}

func TestRender(t *testing.T) {
	checks := []Check{
		{Name: "kernel", OK: true, Needed: true, Detail: "Linux 6.18"},
		{Name: "wings", Needed: true, Detail: "none", Remedy: "grow some"},
		{Name: "halo", Detail: "none", Remedy: "be good"},
	}
	var text bytes.Buffer
	if err := WriteText(&text, checks); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ok       kernel", "missing  wings", "→ grow some", "absent   halo", "Missing, and needed: 1."} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, &text)
		}
	}
	var buf bytes.Buffer
	if err := WriteJSON(&buf, checks); err != nil {
		t.Fatal(err)
	}
	var got struct {
		OK     bool
		Checks []Check
	}
	if err := json.Unmarshal(buf.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.OK || len(got.Checks) != len(checks) || got.Checks[1] != checks[1] {
		t.Errorf("got %+v", got)
	}
}
