package nic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/module/calls"
	"github.com/lambdanic/lambdanic/internal/nic/module/messages"
)

var instances atomic.Int32

// packetAddresses are those that test/packets sends to.
var packetAddresses = []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")}

// testConfig is a config of a new instance. Everything of it is removed after the test, which checks that.
func testConfig(t testing.TB) Config {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	c := Config{
		Instance: fmt.Sprintf("t%d-%d", os.Getpid(), instances.Add(1)), RunDir: t.TempDir(), UnknownError: true, Slots: 64,
		Addresses: packetAddresses, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}.withDefaults()
	t.Cleanup(func() {
		if err := Down(context.WithoutCancel(t.Context()), c); err != nil {
			t.Errorf("down: %v", err)
		}
		checkGone(t, c)
	})
	return c
}

// checkGone fails the test if anything of a virtual NIC is left.
func checkGone(t testing.TB, c Config) {
	t.Helper()
	v := virtualNames(c.Instance)
	if ns, err := netns.GetFromName(v.namespace); err == nil {
		ns.Close()
		t.Errorf("namespace %s is left", v.namespace)
	}
	if _, err := netlink.LinkByName(v.host); err == nil {
		t.Errorf("interface %s is left", v.host)
	}
	for _, path := range []string{c.pins(), c.recordPath()} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left", path)
		}
	}
}

// open brings the NIC of c up, and closes it when the test ends.
func open(t testing.TB, c Config) *NIC {
	t.Helper()
	n, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, n) })
	return n
}

func shut(t testing.TB, n *NIC) {
	t.Helper()
	if err := n.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// newTestNIC brings a virtual NIC up for one test.
func newTestNIC(t testing.TB) *NIC {
	t.Helper()
	return open(t, testConfig(t))
}

var builds sync.Map // lambdas, by directory, spec and definitions

// probe builds test/lambdas/probe to a spec, and gives the revision of it that knows its own number.
func probe(t testing.TB, workload, revision uint32, spec string, defines ...string) backend.Deployment {
	t.Helper()
	defines = append(defines, fmt.Sprintf("PROBE_REVISION %d", revision))
	key := fmt.Sprint(spec, defines)
	build, _ := builds.LoadOrStore(key, sync.OnceValues(func() (*compiler.Artifact, error) {
		source, err := os.ReadFile("../../test/lambdas/probe/probe.c")
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		for _, d := range defines {
			fmt.Fprintf(&b, "#define %s\n", d)
		}
		b.Write(source)
		return buildFiles(map[string][]byte{"probe.c": b.Bytes(), api.SpecFile: []byte("name: probe\n" + spec + "\n")})
	}))
	a, err := build.(func() (*compiler.Artifact, error))()
	if err != nil {
		t.Fatalf("build probe with %s: %v", key, err)
	}
	return deployment(a, workload, revision)
}

func buildFiles(files map[string][]byte) (*compiler.Artifact, error) {
	dir, err := os.MkdirTemp("", "lambdanic-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return nil, err
		}
	}
	return compiler.Build(context.Background(), dir, compiler.Options{})
}

// bundled builds one of the bundled lambdas.
func bundled(t testing.TB, name string, workload, revision uint32) backend.Deployment {
	t.Helper()
	build, _ := builds.LoadOrStore(name, sync.OnceValues(func() (*compiler.Artifact, error) {
		return compiler.Build(context.Background(), filepath.Join("../../lambdas", name), compiler.Options{})
	}))
	a, err := build.(func() (*compiler.Artifact, error))()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return deployment(a, workload, revision)
}

func deployment(a *compiler.Artifact, workload, revision uint32) backend.Deployment {
	return backend.Deployment{
		Namespace: "test", Name: a.Manifest.Spec.Name, Workload: workload, Revision: revision, Spec: a.Manifest.Spec, BPF: a.BPF, Native: a.Native,
		Source: a.Source,
	}
}

// withService points the deployment's only service at an address, which has time to answer, however busy the machine.
func withService(d backend.Deployment, addr netip.AddrPort) backend.Deployment {
	s := d.Spec.Services[0]
	d.Services = []backend.Service{{Name: s.Name, Protocol: s.Protocol, Servers: []netip.AddrPort{addr}, Timeout: api.Duration(longest)}}
	return d
}

func deploy(t testing.TB, n *NIC, list ...backend.Deployment) {
	t.Helper()
	for _, d := range list {
		if err := n.Deploy(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

// The kernel's numbers (include/uapi/linux/bpf.h).
const (
	xdpDrop = 1
	xdpPass = 2
)

var verdicts = map[uint32]string{xdpDrop: "drop", xdpPass: "pass", xdpTX: "reply"}

// runs are the buffers of inject.
var runs = sync.Pool{New: func() any { b := make([]byte, 1<<16); return &b }}

// inject runs the NIC program on a frame, without any interface, and returns the verdict and the resulting frame. Any
// goroutine may call it.
func inject(t testing.TB, n *NIC, frame []byte) (string, []byte) {
	t.Helper()
	buf := runs.Get().(*[]byte)
	defer runs.Put(buf)
	opts := ebpf.RunOptions{Data: frame, DataOut: *buf}
	verdict, err := n.Root().Run(&opts)
	if err != nil {
		t.Errorf("run the NIC program on %d bytes: %v", len(frame), err)
		return "", nil
	}
	return verdicts[verdict], slices.Clone(opts.DataOut)
}

// used counts what the loader has handed out.
type used struct{ slots, buckets, services int }

func usage(n *NIC) used {
	n.changing.Lock()
	defer n.changing.Unlock()
	return used{n.slots.Used(), ModuleOf[*messages.Module](n).Buckets.Used(), ModuleOf[*calls.Module](n).Servers.Used()}
}

// eventually polls until f holds.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// now is the time of the clock that message records go by.
func now(t testing.TB) uint64 {
	t.Helper()
	ns, err := module.Now()
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func wantError(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got error %v, want one that says %q", err, text)
	}
}

// pinnedMap opens one of the NIC program's maps by its name in C.
func pinnedMap(t testing.TB, n *NIC, name string) *ebpf.Map {
	t.Helper()
	m, err := ebpf.LoadPinnedMap(filepath.Join(n.cfg.pins(), name), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}
