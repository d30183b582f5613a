package nic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/module/calls"
	"github.com/lambdanic/lambdanic/internal/nic/module/messages"
	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
)

// wantRevision checks which revision answers a workload of probe; 0 for none.
func wantRevision(t testing.TB, n *NIC, workload, revision uint32) {
	t.Helper()
	f := packets.Frame{RPC: packets.RPC{Workload: "it", Method: methodCount, Request: requests.Add(1), Payload: "........"}}
	frame, err := f.Build(map[string]uint32{"it": workload})
	if err != nil {
		t.Fatal(err)
	}
	_, out := inject(t, n, frame)
	h, p, err := packets.Answer(frame, out)
	if err != nil {
		t.Fatal(err)
	}
	if h.Revision != revision || revision != 0 && binary.LittleEndian.Uint32(p) != 1+(revision-1)%2 {
		t.Fatalf("workload %#x: got %+v %x, want revision %d", workload, h, p, revision)
	}
}

// version is revision i of a workload, with one of two builds of probe that alternate.
func version(t testing.TB, workload, i uint32, spec string) backend.Deployment {
	t.Helper()
	d := probe(t, workload, 1+(i-1)%2, spec)
	d.Revision = i
	return d
}

// A daemon that comes back finds everything as it was: revisions, counters of the lambdas, messages in assembly.
func TestAdopt(t *testing.T) {
	c := testConfig(t)
	n := open(t, c)
	deploy(t, n, version(t, workloads["packet"], 1, packetSpec), version(t, workloads["assemble"], 5, assembleSpec))
	wantRevision(t, n, workloads["packet"], 1)
	list := fragments("assemble", methodStamp, randomBytes(100), 50)
	call(t, n, list[0])
	before := usage(n)
	shut(t, n)

	n = open(t, c)
	if !n.Adopted() || usage(n) != before {
		t.Fatalf("adopted %t, in use %+v, before %+v", n.Adopted(), usage(n), before)
	}
	if h, _ := call(t, n, list[1]); h.Revision != 5 {
		t.Errorf("message in assembly: got %+v", h)
	}
	h, p := call(t, n, fragments("packet", methodCount, make([]byte, 8), 8)[0])
	if count := binary.LittleEndian.Uint32(p[4:]); h.Revision != 1 || count != 2 {
		t.Errorf("revision %d counts %d, want revision 1 to count on", h.Revision, count)
	}
	deploy(t, n, version(t, workloads["packet"], 2, packetSpec))
	if _, p = call(t, n, fragments("packet", methodCount, make([]byte, 8), 8)[0]); binary.LittleEndian.Uint32(p[4:]) != 3 {
		t.Errorf("the next revision does not count on: %x", p)
	}
	list2, err := n.Status(t.Context())
	if err != nil || len(list2) != 2 || list2[0].Revision != 2 || list2[1].Revision != 5 || list2[1].Stats.Requests != 1 {
		t.Errorf("status %+v, %v", list2, err)
	}
}

// A NIC that differs from its record, or from what is asked for, is made anew.
func TestRebuild(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, n *NIC, c *Config){
		"other options":     func(_ *testing.T, _ *NIC, c *Config) { c.UnknownError = false },
		"other boot":        func(t *testing.T, n *NIC, c *Config) { rewrite(t, n, c, func(r *record) { r.BootID = "another" }) },
		"other layout":      func(t *testing.T, n *NIC, c *Config) { rewrite(t, n, c, func(r *record) { r.Layout++ }) },
		"other program":     func(t *testing.T, n *NIC, c *Config) { rewrite(t, n, c, func(r *record) { r.Program = "another" }) },
		"other interface":   func(t *testing.T, n *NIC, c *Config) { rewrite(t, n, c, func(r *record) { r.Index++ }) },
		"torn record":       func(t *testing.T, _ *NIC, c *Config) { write(t, c.recordPath(), `{"instance": "`) },
		"no record":         func(t *testing.T, _ *NIC, c *Config) { remove(t, c.recordPath()) },
		"no pins":           func(t *testing.T, _ *NIC, c *Config) { remove(t, c.pins()) },
		"one map not there": func(t *testing.T, _ *NIC, c *Config) { remove(t, c.pins()+"/ln_services") },
		"program not there": func(t *testing.T, _ *NIC, c *Config) { remove(t, c.pins()+"/slots/1") },
		"interface gone": func(t *testing.T, n *NIC, _ *Config) {
			l, err := netlink.LinkByName(n.HostEnd())
			if err == nil {
				err = netlink.LinkDel(l)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testConfig(t)
			n := open(t, c)
			deploy(t, n, version(t, workloads["packet"], 1, packetSpec))
			shut(t, n)
			spoil(t, n, &c)
			n = open(t, c)
			// A workload whose program's pin is gone is not adopted, but everything else is.
			if n.Adopted() && name != "program not there" {
				t.Error("adopted")
			}
			deploy(t, n, version(t, workloads["packet"], 2, packetSpec))
			wantRevision(t, n, workloads["packet"], 2)
		})
	}
}

func rewrite(t *testing.T, n *NIC, c *Config, change func(*record)) {
	t.Helper()
	rec := *n.rec
	change(&rec)
	if err := rec.write(c.recordPath()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// Two instances share nothing, and removing one does not affect the other. Down without a NIC is not an error.
func TestTwoInstances(t *testing.T) {
	a, b := newTestNIC(t), newTestNIC(t)
	if a.Addr() == b.Addr() {
		t.Fatalf("both have the address %v", a.Addr())
	}
	deploy(t, a, version(t, 7, 1, packetSpec))
	deploy(t, b, version(t, 7, 2, packetSpec))
	wantRevision(t, a, 7, 1)
	wantRevision(t, b, 7, 2)
	shut(t, a)
	for range 2 {
		if err := Down(t.Context(), a.cfg); err != nil {
			t.Error(err)
		}
	}
	checkGone(t, a.cfg)
	wantRevision(t, b, 7, 2)
}

func TestNoSuchInterface(t *testing.T) {
	c := testConfig(t)
	c.Interface = "no-such-nic"
	_, err := Up(t.Context(), c)
	wantError(t, err, "interface no-such-nic does not exist")
	checkGone(t, c)
}

// Interface names have at most 15 bytes, instance names may be longer. A name that no file can have is refused and leaves nothing.
func TestLongNames(t *testing.T) {
	c := testConfig(t)
	c.Instance = strings.Repeat("n", 100) + c.Instance
	n := open(t, c)
	if len(n.HostEnd()) > 15 {
		t.Errorf("interface %q", n.HostEnd())
	}
	shut(t, n)
	if err := Down(t.Context(), c); err != nil {
		t.Error(err)
	}
	checkGone(t, c)
	c.Instance = strings.Repeat("n", 300)
	if _, err := Up(t.Context(), c); err == nil {
		t.Error("no error for an instance name of 300 bytes")
	}
	if _, err := netlink.LinkByName(virtualNames(c.Instance).host); err == nil {
		t.Error("its interface is left")
	}
}

// newVeth makes a pair for one test, whose one end stands for a real interface.
func newVeth(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	name := fmt.Sprintf("lnt%d-%d", os.Getpid(), instances.Add(1))
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: name})
	veth.PeerName = name + "p"
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(veth); err != nil {
			t.Error(err)
		}
	})
	return name
}

// The NIC program is attached to a real interface in the requested mode, and the interface is left as it was found. A veth whose other end has no program
// loses what a native one sends.
func TestRealInterface(t *testing.T) {
	for name, r := range map[string]struct {
		mode, want Mode
		peer       bool // the other end has a program
	}{
		"auto": {mode: ModeAuto, want: ModeGeneric}, "auto, program at the other end": {mode: ModeAuto, want: ModeNative, peer: true},
		"native": {mode: ModeNative, want: ModeNative}, "generic": {mode: ModeGeneric, want: ModeGeneric},
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(t)
			c.Interface, c.Mode, c.Verify = newVeth(t), r.mode, true
			if r.peer {
				peer, err := net.InterfaceByName(c.Interface + "p")
				if err != nil {
					t.Fatal(err)
				}
				pass, err := xdp.AttachPass(peer.Index)
				if err != nil {
					t.Fatal(err)
				}
				defer pass.Close()
			}
			_, err := Up(t.Context(), c)
			wantError(t, err, "has no address")
			l, err := netlink.LinkByName(c.Interface)
			if err != nil {
				t.Fatal(err)
			}
			addr := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 236, byte(os.Getpid()>>8), byte(os.Getpid())), Mask: net.CIDRMask(32, 32)}}
			if err := netlink.AddrAdd(l, addr); err != nil {
				t.Fatal(err)
			}
			n := open(t, c)
			if n.Mode() != r.want {
				t.Errorf("attached in mode %s, want %s", n.Mode(), r.want)
			}
			deploy(t, n, version(t, 7, 1, packetSpec))
			wantRevision(t, n, 7, 1)
			d := withService(bundled(t, "kv_client", 8, 1), netip.AddrPortFrom(n.Addr().Addr(), 11211))
			if err := n.Deploy(t.Context(), d); !errors.Is(err, ErrRefused) {
				t.Errorf("a service on the host itself: %v", err)
			}
			shut(t, n)
			if err := Down(t.Context(), c); err != nil {
				t.Error(err)
			}
			eventually(t, "the program comes off", func() bool { // a worker of the kernel's takes it off
				l, err := netlink.LinkByName(c.Interface)
				return err == nil && (l.Attrs().Xdp == nil || !l.Attrs().Xdp.Attached)
			})
		})
	}
}

// Somebody else's XDP program stays attached.
func TestInterfaceInUse(t *testing.T) {
	c := testConfig(t)
	c.Interface = newVeth(t)
	other := newTestNIC(t)
	l, err := netlink.LinkByName(c.Interface)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 236, 255, byte(os.Getpid())), Mask: net.CIDRMask(32, 32)}}); err != nil {
		t.Fatal(err)
	}
	xdp, err := link.AttachXDP(link.XDPOptions{Program: other.Root(), Interface: l.Attrs().Index})
	if err != nil {
		t.Fatal(err)
	}
	defer xdp.Close()
	_, err = Up(t.Context(), c)
	wantError(t, err, "another XDP program is attached")
	checkGone(t, c)
	if l, err = netlink.LinkByName(c.Interface); err != nil || !l.Attrs().Xdp.Attached {
		t.Errorf("the other program is gone: %v", err)
	}
}

// wanting is the resource for whose lack a deployment was refused, or "".
func wanting(err error) string {
	_, after, _ := strings.Cut(err.Error(), " on the NIC: ")
	if what, why, _ := strings.Cut(after, ": "); strings.Contains(why, "consecutive of") {
		return what
	}
	return ""
}

// Random deploys and removals against a model, with so few slots and records that they run out: the right revision answers every
// workload, failures change nothing, and in the end nothing has leaked.
func TestRandomDeployments(t *testing.T) {
	c := testConfig(t)
	c.Slots = 24
	n := open(t, c)
	ModuleOf[*messages.Module](n).Buckets, ModuleOf[*calls.Module](n).Servers = module.NewRanges(0, 10), module.NewRanges(0, 3)
	r := seed.Rand(t)
	// Messages expire soon, so that revisions drain soon.
	soon := strings.NewReplacer("timeout: 1m", "timeout: 5s")
	specs := []string{packetSpec, soon.Replace(streamSpec), soon.Replace(assembleSpec), "message: {mode: assemble, max: 2KiB, in_flight: 16}",
		"services: [{name: memcached, protocol: memcached, address: \"host:1\"}]"}
	service := netip.AddrPortFrom(n.HostAddr(), 1)
	// Each resource runs out, and becomes free again.
	for spec, want := range map[string]string{packetSpec: "slots of the NIC", specs[3]: "message records of the NIC", specs[4]: "service records of the NIC"} {
		for w := uint32(1); ; w++ {
			d := version(t, w, 1, spec)
			if len(d.Spec.Services) > 0 {
				d = withService(d, service)
			}
			err := n.Deploy(t.Context(), d)
			if err == nil {
				continue
			}
			if wanting(err) != want {
				t.Fatalf("workload %d of %s: %v, want it refused for want of %s", w, spec, err, want)
			}
			for ; w > 0; w-- {
				if err := n.Remove(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			break
		}
		eventually(t, "everything is freed", func() bool { return usage(n) == used{} })
	}
	current, last := map[uint32]uint32{}, map[uint32]uint32{}
	for range 150 {
		w := 1 + r.Uint32N(16)
		if r.IntN(5) == 0 {
			if err := n.Remove(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			delete(current, w)
		} else {
			last[w]++
			d := version(t, w, last[w], specs[r.IntN(len(specs))])
			if len(d.Spec.Services) > 0 {
				d = withService(d, service)
			}
			if err := n.Deploy(t.Context(), d); err == nil {
				current[w] = d.Revision
			} else if wanting(err) == "" {
				t.Fatal(err)
			}
		}
		for w := range last {
			wantRevision(t, n, w, current[w])
		}
	}
	eventually(t, "superseded revisions are freed", func() bool { return usage(n).slots == len(current) })
	for w := range last {
		wantRevision(t, n, w, current[w])
		if err := n.Remove(t.Context(), w); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "everything is freed", func() bool { return usage(n) == used{} })
	for _, dir := range []string{"slots", "kept"} {
		if left, err := os.ReadDir(c.pins() + "/" + dir); err != nil || len(left) > 0 {
			t.Errorf("pins left in %s: %v %v", dir, left, err)
		}
	}
}

// Object files that are not lambdas, or damaged ones, are refused and hold nothing; some mutations do no harm and load. In all
// cases, the lambda beside them answers.
func TestHostileObjects(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, version(t, 1, 1, packetSpec))
	good := version(t, 2, 1, streamSpec)
	limited := good
	limited.Spec.Limits.Memory = 1
	if err := n.Deploy(t.Context(), limited); !errors.Is(err, ErrRefused) {
		t.Errorf("beyond its limit: %v", err)
	}
	r, refused := seed.Rand(t), 0
	for i := range 300 {
		d := good
		d.Revision = uint32(i + 1)
		d.BPF = bytes.Clone(good.BPF)
		switch i % 3 {
		case 0:
			d.BPF = randomBytes(r.IntN(200))
		case 1:
			d.BPF = d.BPF[:r.IntN(len(d.BPF))]
		case 2:
			for range 1 + r.IntN(20) {
				d.BPF[r.IntN(len(d.BPF))] ^= 1 << r.IntN(8)
			}
		}
		before := usage(n)
		if err := n.Deploy(t.Context(), d); err != nil {
			refused++
			if after := usage(n); after.slots > before.slots || after.buckets > before.buckets {
				t.Fatalf("refused (%v), and %+v are in use where %+v were", err, after, before)
			}
		} else if err := n.Remove(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		wantRevision(t, n, 1, 1)
	}
	t.Logf("%d of 300 refused", refused)
	eventually(t, "nothing is left of them", func() bool { return usage(n) == used{slots: 1} })
}

// The loopback is refused: it carries this machine's own traffic, and no other machine reaches it.
func TestLoopbackIsNoNIC(t *testing.T) {
	r := &record{Interface: "lo"}
	if err := r.findAddresses(Config{}); err == nil || !strings.Contains(err.Error(), "lo is the loopback") {
		t.Errorf("got %v", err)
	}
}
