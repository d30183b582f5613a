package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func start(t *testing.T, script string, o Options) *Process {
	t.Helper()
	p, err := Start(exec.Command("/bin/sh", "-c", script), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

// A process lives in a session and a cgroup of its own, inherits no environment, and we learn how it ended.
func TestStart(t *testing.T) {
	t.Setenv("LAMBDANIC_TEST", "ours")
	group := NewCgroup(fmt.Sprintf("lambdanic-supervise-test-%d", os.Getpid()))
	p := start(t, `test -z "$LAMBDANIC_TEST" && kill -STOP $$; exit 3`, Options{Cgroup: group})
	if sid, err := unix.Getsid(p.PID); err != nil || sid != p.PID {
		t.Errorf("its session is %d, %v, want %d", sid, err, p.PID)
	}
	within, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
	if err != nil || group != "" && !strings.Contains(string(within), "lambdanic-supervise-test-") {
		t.Errorf("it is in cgroup %s, %v", within, err)
	}
	if _, gone := p.Gone(); gone {
		t.Error("a process that waits is gone")
	}
	if err := p.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, gone := p.Gone(); !gone; _, gone = p.Gone() {
		_ = p.Signal(unix.SIGCONT) // it may not have stopped yet
	}
	if how, _ := p.Gone(); how != "exit status 3" {
		t.Errorf("it ended by %q", how)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("kill a process that is gone: %v", err)
	}
	if err := group.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(string(group)); group != "" && !os.IsNotExist(err) {
		t.Errorf("the cgroup is left: %v", err)
	}
}

// Following a process shows how it ends; closing stops following, and leaves the process alone.
func TestFollow(t *testing.T) {
	p := start(t, "kill -STOP $$", Options{})
	f, err := Follow(p.PID)
	if err != nil || f.Start != p.Start {
		t.Fatalf("got %+v, %v, want start %d", f, err, p.Start)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	<-f.Ended()
	if _, gone := f.Gone(); gone {
		t.Error("a process that is no longer followed is called gone")
	}
	if _, gone := p.Gone(); gone {
		t.Error("the process is gone")
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if how, gone := p.Gone(); !gone || how != "signal: killed" {
		t.Errorf("it ended by %q, gone %t", how, gone)
	}
	if _, err := Follow(p.PID); err == nil {
		t.Error("a process that is gone was found")
	}
}

// All processes in a cgroup end with it, also those that the first one started.
func TestCgroupKill(t *testing.T) {
	group := NewCgroup(fmt.Sprintf("lambdanic-supervise-kill-%d", os.Getpid())).Child("one")
	if group == "" {
		t.Skip("no cgroup v2 that we may write to")
	}
	p := start(t, "setsid sleep 1000 & wait", Options{Cgroup: group})
	group.Kill()
	<-p.Ended()
	if err := group.Remove(); err != nil {
		t.Error(err)
	}
	if err := NewCgroup(fmt.Sprintf("lambdanic-supervise-kill-%d", os.Getpid())).Remove(); err != nil {
		t.Error(err)
	}
}
