package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/check/native"
	"github.com/lambdanic/lambdanic/test/freeport"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// running counts the processes of a user, without those that wait to be reaped.
func running(t testing.TB, user int) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, _ := os.ReadFile(name) // it may have ended
		if bytes.Contains(text, fmt.Appendf(nil, "\nUid:\t%d\t", user)) && !bytes.Contains(text, []byte("\nState:\tZ")) {
			n++
		}
	}
	return n
}

// fork has the lambda start processes until it may not. If a run was ended for its time, nobody knows whether it started any:
// unsure counts these runs.
func (c *rawClient) fork() (n, unsure int) {
	c.t.Helper()
	for n+unsure < 2*maxTasks {
		h, p := c.call(workload, 0, make([]byte, 4), 0)
		if h.Type == api.TypeError && h.Code == uint8(api.CodeLambdaFault) {
			unsure++
			continue
		}
		if code := unix.Errno(binary.LittleEndian.Uint32(p)); code != 0 {
			if code != unix.EAGAIN {
				c.t.Fatalf("fork: %v", code)
			}
			return n, unsure
		}
		n++
	}
	c.t.Fatalf("a lambda started %d processes, and maybe %d more", n, unsure)
	return n, unsure
}

// A lambda starts no process, opens no socket and starts no thread.
func TestSystemCallsAreFiltered(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	c := dial(t, mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "escape"))))
	for method, what := range []string{"fork", "socket", "thread"} {
		_, p := c.call(workload, uint32(method), make([]byte, 4), 0)
		if code := unix.Errno(binary.LittleEndian.Uint32(p)); code != unix.EPERM {
			t.Errorf("%s: %v, want %v", what, code, unix.EPERM)
		}
	}
}

// If nothing keeps a lambda from starting processes, as in the build with sanitizers, their number is bounded, they do not keep the
// lambda's process from being started again, and they end with the workload.
func TestForkedProcessesEnd(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	if os.Geteuid() != 0 || b.groups == "" {
		t.Skip("needs root and a writable cgroup v2")
	}
	c := dial(t, mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "escape"))))
	in, _ := b.get(workload, false)
	user := userOf(in.dir)
	n, unsure := c.fork()
	if all := running(t, user); n == 0 || all < n+1 || all > n+1+unsure {
		t.Fatalf("%d processes run, want %d, maybe %d more, and lambda-host", all, n, unsure)
	}
	pid := pidOf(t, b, workload)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it serves again, alone", func() bool {
		list, err := b.Status(t.Context())
		return err == nil && len(list) == 1 && pidOf(t, b, workload) != pid && running(t, user) == 1
	})
	c.fork()
	if err := b.Remove(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing of it runs", func() bool { return running(t, user) == 0 })
	if _, err := os.Stat(string(in.group)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its cgroup: %v", err)
	}
}

func TestConstructorIsRefused(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	c := dial(t, mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "packet"))))
	err := b.Deploy(t.Context(), deployment(workload, 2, api.ModePacket, fixture(t, "escape", "FIXTURE_CONSTRUCTOR")))
	if !errors.Is(err, native.ErrForbidden) || !strings.Contains(err.Error(), "constructor") {
		t.Errorf("got %v", err)
	}
	if got := c.count(); got != 1 {
		t.Errorf("the earlier revision counts %d, want 1", got)
	}
}

// A shared library that crashes the dynamic linker, by a symbol version without an address, is refused. The serving process keeps its
// state.
func TestDeadlyObjectIsRefused(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	object := fixture(t, "packet")
	c := dial(t, mustDeploy(t, b, deployment(workload, 1, api.ModePacket, object)))
	c.count()
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	for at := file.Section(".dynamic").Offset; ; at += 16 {
		if tag := elf.DynTag(binary.LittleEndian.Uint64(object[at:])); tag == elf.DT_VERNEED {
			binary.LittleEndian.PutUint64(object[at+8:], 1<<46)
			break
		} else if tag == elf.DT_NULL {
			t.Fatal("no versions")
		}
	}
	if err := b.Deploy(t.Context(), deployment(workload, 2, api.ModePacket, object)); err == nil || !strings.Contains(err.Error(), "segmentation fault") {
		t.Errorf("got %v", err)
	}
	if got := c.count(); got != 2 {
		t.Errorf("count %d after the refusal, want 2", got)
	}
}

// A library on the disk is checked again before a process is started from it.
func TestConstructorIsRefusedAgain(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "packet")))
	in, _ := b.get(workload, false)
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := os.WriteFile(filepath.Join(in.dir, in.record.Object), fixture(t, "escape", "FIXTURE_CONSTRUCTOR"), 0o640); err != nil {
		t.Fatal(err)
	}
	next := in.record
	if _, err := in.run(t.Context(), &next, ""); !errors.Is(err, native.ErrForbidden) {
		t.Errorf("got %v", err)
	}
}

// If root cannot become another user, here since that user does not exist in its namespace, nothing is run.
func TestRootIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make this namespace for sure")
	}
	socket := filepath.Join(shortdir.New(t), "control")
	addr, err := freeport.UDP(1)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), plainHost, "--listen", addr.String(), "--control", socket, "--workload", "1")
	root := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: root, GidMappings: root}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "cannot become user") {
		t.Errorf("%v: %s", err, out)
	}
}

// Two instances on a machine, and two workloads of one, do not share a user.
func TestUsersDiffer(t *testing.T) {
	seen := make(map[int]string)
	for _, run := range []string{"/run/a", "/run/b"} {
		for w := range 20 {
			dir := filepath.Join(run, fmt.Sprintf("%08x", w))
			user := userOf(dir)
			if other, ok := seen[user]; ok || user < 0x70000000 || user > 0x77ffffff {
				t.Errorf("user %#x of %s, and of %q", user, dir, other)
			}
			seen[user] = dir
		}
	}
}
