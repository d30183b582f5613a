package veth

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside is set in a process of these tests that has mounts of its own.
const inside = "LAMBDANIC_TEST_OWN_MOUNTS"

// withOwnRun runs the test once more, in a process whose /run is new and private, as in many containers. It says whether this is that.
func withOwnRun(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		if err := unix.Mount("none", "/run", "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a process with its own mounts: %v\n%s", err, out)
	}
	return false
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v\n%s", args, err, out)
	}
}

// names lists the namespaces.
func names(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(Namespaces)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// A namespace can be removed after the first that ip-netns(8) makes on a machine.
func TestRemoveAfterOthers(t *testing.T) {
	if !withOwnRun(t) {
		return
	}
	ns, err := NewNamespace("ours")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	ip(t, "netns", "add", "theirs")
	if err := RemoveNamespace("ours"); err != nil {
		t.Fatal(err)
	}
	ip(t, "netns", "del", "theirs")
	if left := names(t); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}

// A namespace that was mounted into a directory which is no mount of its own stays removable when we make one.
func TestOthersStayRemovable(t *testing.T) {
	if !withOwnRun(t) {
		return
	}
	theirs := Namespaces + "/theirs"
	if err := os.Mkdir(Namespaces, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(theirs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("/proc/self/ns/net", theirs, "none", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	ns, err := NewNamespace("ours")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := RemoveNamespace("theirs"); err != nil {
		t.Error(err)
	}
	if err := RemoveNamespace("ours"); err != nil {
		t.Error(err)
	}
	if left := names(t); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}
