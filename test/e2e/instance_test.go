package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/api"
)

// patience ends tests that hang: no test passes or fails by how long anything takes on a busy machine.
const patience = 2 * time.Minute

// instance is one all-in-one λ-NIC with its own NIC, store and gateway.
type instance struct {
	t       *testing.T
	name    string
	dir     string // holds data and run directories
	gateway string // HOST:PORT
}

var instances atomic.Int32

// up brings an instance up and takes it down, with everything that belongs to it, when the test ends.
func up(t *testing.T, flags ...string) *instance {
	t.Helper()
	needRoot(t)
	i := newInstance(t)
	i.start(flags...)
	return i
}

func newInstance(t *testing.T) *instance {
	t.Helper()
	dir, err := os.MkdirTemp("", "ln") // t.TempDir's path is too long for UNIX sockets
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{
		t:       t,
		name:    fmt.Sprintf("e%05d-%d", os.Getpid()%100000, instances.Add(1)), // short: interfaces are named after it
		dir:     dir,
		gateway: freeAddr(t, "127.0.0.1"),
	}
	if err := i.fillStore(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := i.try("down", "--purge"); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
		i.checkGone()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return i
}

func (i *instance) start(flags ...string) {
	i.t.Helper()
	i.run(append([]string{"up", "--detach", "--listen", i.gateway}, flags...)...)
}

// command gives the binary's command line for this instance. A command that hangs is ended, so that the rest is cleaned up.
func (i *instance) command(args ...string) *exec.Cmd {
	flags := []string{"--instance", i.name, "--data-dir", filepath.Join(i.dir, "data"), "--run-dir", filepath.Join(i.dir, "run")}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	i.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, append(args[:1:1], append(flags, args[1:]...)...)...)
	cmd.Dir, cmd.WaitDelay = root, patience
	return cmd
}

// try runs the binary and returns its output, including errors.
func (i *instance) try(args ...string) (string, error) {
	out, err := i.command(args...).CombinedOutput()
	return string(out), err
}

// run runs the binary and gives its standard output.
func (i *instance) run(args ...string) []byte {
	i.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := i.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		i.t.Fatalf("lambdanic %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.Bytes()
}

// query runs a command with --json and decodes what it prints.
func query[T any](i *instance, args ...string) T {
	i.t.Helper()
	out := i.run(append(args, "--json")...)
	var v T
	if err := json.Unmarshal(out, &v); err != nil {
		i.t.Fatalf("lambdanic %s --json: %v\n%s", strings.Join(args, " "), err, out)
	}
	return v
}

func (i *instance) describe(function string) api.Function {
	i.t.Helper()
	return query[api.Function](i, "describe", function)
}

// on is the instance within a subtest.
func (i *instance) on(t *testing.T) *instance {
	clone := *i
	clone.t = t
	return &clone
}

// node asks the daemon's private socket about itself.
func (i *instance) node() api.Node {
	i.t.Helper()
	socket := filepath.Join(i.dir, "run", i.name, "lambdanic.sock")
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	answer, err := client.Get("http://lambdanic/system/node")
	if err != nil {
		i.t.Fatal(err)
	}
	defer answer.Body.Close()
	var node api.Node
	if err := json.NewDecoder(answer.Body).Decode(&node); err != nil {
		i.t.Fatal(err)
	}
	return node
}

// hostAddr is the host's own address on the NIC's link, by which lambdas on the NIC reach it.
func (i *instance) hostAddr() string {
	i.t.Helper()
	return i.wayToNIC().Src.String()
}

func (i *instance) wayToNIC() netlink.Route {
	i.t.Helper()
	nic := i.describeNIC()
	routes, err := netlink.RouteGet(nic)
	if err != nil || len(routes) == 0 {
		i.t.Fatalf("find the way to the NIC at %v: %v", nic, err)
	}
	return routes[0]
}

// describeNIC gives the NIC's address, which the daemon names behind "at".
func (i *instance) describeNIC() net.IP {
	i.t.Helper()
	for _, target := range i.node().Targets {
		if target.Target == api.TargetNIC && target.Available {
			_, at, _ := strings.Cut(target.Detail, " at ")
			addr, err := netip.ParseAddrPort(at)
			if err != nil {
				i.t.Fatalf("read %q: %v", target.Detail, err)
			}
			return addr.Addr().AsSlice()
		}
	}
	i.t.Fatal("the daemon has no NIC")
	return nil
}

// checkGone fails the test for every namespace, interface, pin and process that bears the instance's name.
func (i *instance) checkGone() {
	i.t.Helper()
	for _, pattern := range []string{"/run/netns/*" + i.name + "*", "/sys/fs/bpf/lambdanic/" + i.name} {
		if left, _ := filepath.Glob(pattern); left != nil {
			i.t.Errorf("left behind: %v", left)
		}
	}
	var links []netlink.Link
	poll(i.t, "interfaces are listed", func() (err error) { // any process's change interrupts the listing
		links, err = netlink.LinkList()
		return err
	})
	for _, l := range links {
		if strings.Contains(l.Attrs().Alias+l.Attrs().Name, i.name) {
			i.t.Errorf("left behind: interface %s", l.Attrs().Name)
		}
	}
	poll(i.t, "the instance's processes end", func() error {
		if pids := i.processes(); pids != nil {
			return fmt.Errorf("left behind: processes %v", pids)
		}
		return nil
	})
}

// processes finds those whose command line names the instance or its directory.
func (i *instance) processes() []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte(i.dir)) && !bytes.Contains(line, []byte(i.name)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill ends the daemon the hard way and waits until it is gone.
func (i *instance) kill() {
	i.t.Helper()
	node := i.node()
	if err := syscall.Kill(node.PID, syscall.SIGKILL); err != nil {
		i.t.Fatalf("kill daemon %d: %v", node.PID, err)
	}
	poll(i.t, "the daemon ends", func() error {
		if err := syscall.Kill(node.PID, 0); err == nil && !isZombie(node.PID) {
			return fmt.Errorf("daemon %d lives", node.PID)
		}
		return nil
	})
}

// isZombie tells whether the process has ended except for its entry. The state alone is that of its first thread: while
// another thread still ends, the process holds its files and so its locks (kernel/exit.c, delay_group_leader).
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	return err == nil && bytes.Contains(stat, []byte(") Z ")) && len(threads) == 1
}

// poll tries until check finds nothing wrong, or time is up.
func poll(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// freeAddr finds a port that nobody uses, for TCP.
func freeAddr(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
