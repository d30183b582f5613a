//go:build guest

package nic

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/internal/xdp/dispatcher"
	"github.com/lambdanic/lambdanic/test/packets"
)

const inside = "LAMBDANIC_TEST_INSIDE"

// inOwnNamespaces runs the test in a process with a network namespace and a BPF file system of its own. There it returns true.
func inOwnNamespaces(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	if os.Getenv(inside) != "" {
		for _, m := range []struct {
			from, to, kind string
			flags          uintptr
		}{{"", "/", "", unix.MS_REC | unix.MS_PRIVATE}, {"bpf", "/sys/fs/bpf", "bpf", 0}} {
			if err := unix.Mount(m.from, m.to, m.kind, m.flags, ""); err != nil {
				t.Fatal(err)
			}
		}
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$", "-test.timeout", "8m")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // with which the process would die
	defer runtime.UnlockOSThread()
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v:\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
	return false
}

// beside is an interface for a NIC program and those of others, in the namespaces of the test.
type beside struct {
	*testing.T
	name, peer string
	index      int
	objects    string // of the others' programs
}

func newBeside(t *testing.T) *beside {
	t.Helper()
	s := &beside{T: t, name: "shared0", peer: "shared1", objects: t.TempDir()}
	pair := netlink.NewVeth(netlink.LinkAttrs{Name: s.name})
	pair.PeerName = s.peer
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = netlink.LinkDel(pair) })
	s.index = s.up(s.name, "10.77.0.1/24")
	peer := s.up(s.peer, "10.77.0.2/24")
	pass, err := xdp.AttachPass(peer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pass.Close() })
	for _, source := range []string{"others", "xdp-dispatcher"} {
		s.run("clang-19", "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-I/usr/include/"+machine()+"-linux-gnu", "-c",
			"testdata/beside/"+source+".c", "-o", filepath.Join(s.objects, source+".o"))
	}
	s.run("gcc", "-O2", "-shared", "-fPIC", "testdata/beside/newer.c", "-o", filepath.Join(s.objects, "newer.so"))
	return s
}

func machine() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return unix.ByteSliceToString(u.Machine[:])
}

func (s *beside) up(name, cidr string) int {
	s.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		s.Fatal(err)
	}
	addr, err := netlink.ParseAddr(cidr)
	if err != nil {
		s.Fatal(err)
	}
	for _, err := range []error{netlink.AddrAdd(l, addr), netlink.LinkSetUp(l)} {
		if err != nil {
			s.Fatal(err)
		}
	}
	return l.Attrs().Index
}

// run runs a command, and xdp-loader as if it were recent: with the test's dispatcher.
func (s *beside) run(command ...string) string {
	s.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	if command[0] == "xdp-loader" {
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+filepath.Join(s.objects, "newer.so"), "DISPATCHER="+filepath.Join(s.objects, "xdp-dispatcher.o"))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// load loads a program of others.
func (s *beside) load(program string, priority int) {
	s.Helper()
	s.run("xdp-loader", "load", "-n", program, "-P", strconv.Itoa(priority), s.name, filepath.Join(s.objects, "others.o"))
}

// unload unloads one.
func (s *beside) unload(program string) {
	s.Helper()
	for line := range strings.Lines(s.run("xdp-loader", "status", s.name)) {
		if f := strings.Fields(line); len(f) > 4 && f[0] == "=>" && f[2] == program {
			s.run("xdp-loader", "unload", s.name, "--id", f[3])
			return
		}
	}
	s.Fatalf("%s is not loaded", program)
}

// want compares the programs that xdp-loader lists, with their priorities.
func (s *beside) want(programs ...string) {
	s.Helper()
	var got []string
	status := s.run("xdp-loader", "status", s.name)
	for line := range strings.Lines(status) {
		if f := strings.Fields(line); len(f) > 4 && f[0] == "=>" {
			got = append(got, f[1]+" "+f[2])
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(programs) {
		s.Errorf("got programs %q, want %q:\n%s", got, programs, status)
	}
	dirs, err := filepath.Glob("/sys/fs/bpf/xdp/*")
	if err != nil || len(dirs) != min(1, len(programs)) {
		s.Errorf("got the pins %v, %v, of %d programs", dirs, err, len(programs))
	}
}

// verdict runs what is attached on a datagram between two ports.
func (s *beside) verdict(from, to uint16) string {
	s.Helper()
	f := packets.Frame{
		Port: to, Patch: map[string]string{"udp+0": fmt.Sprintf("%04x", from)}, Checksum: "none",
		RPC: packets.RPC{Workload: "it", Method: methodCount, Request: requests.Add(1), Payload: "........"},
	}
	frame, err := f.Build(map[string]uint32{"it": 7})
	if err != nil {
		s.Fatal(err)
	}
	id, _, err := xdp.Attached(s.index)
	if err != nil {
		s.Fatal(err)
	}
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		s.Fatal(err)
	}
	defer prog.Close()
	verdict, err := prog.Run(&ebpf.RunOptions{Data: frame, DataOut: make([]byte, 1<<16)})
	if err != nil {
		s.Fatal(err)
	}
	return verdicts[verdict]
}

// serves checks that requests are answered, unless the program before drops them, and that the rest gets to the program after.
func (s *beside) serves(early, nic, late bool) {
	s.Helper()
	is := func(there bool, verdict, without string) string {
		if there {
			return verdict
		}
		return without
	}
	for _, c := range []struct {
		what     string
		from, to uint16
		want     string
	}{
		{"a request", 40000, 0, is(nic, "reply", "pass")},
		{"a request that the first drops", 9001, 0, is(early, "drop", is(nic, "reply", "pass"))},
		{"a request that the last would drop", 9002, 0, is(nic, "reply", is(late, "drop", "pass"))},
		{"a datagram that the first drops", 40000, 9001, is(early, "drop", "pass")},
		{"a datagram that the last drops", 40000, 9002, is(late, "drop", "pass")},
		{"a datagram to the host", 40000, 9004, "pass"},
	} {
		if got := s.verdict(c.from, c.to); got != c.want {
			s.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
}

// hasDemux finds the NIC program among those of the interface, as ikernels do.
func (s *beside) hasDemux(n *NIC) {
	s.Helper()
	ids, mode, err := dispatcher.Running(s.index)
	if err != nil || mode != ModeNative {
		s.Fatalf("mode %s, %v", mode, err)
	}
	var roots []bool
	for _, id := range ids {
		r, err := n.Demux(id)
		if err != nil {
			s.Fatal(err)
		}
		roots = append(roots, r != nil)
		if r != nil {
			if err := errors.Join(r.Attached(), r.Close()); err != nil {
				s.Error(err)
			}
		}
	}
	if !slices.Equal(roots, []bool{false, true, false}) {
		s.Errorf("got NIC programs %v of %v", roots, ids)
	}
}

func (s *beside) config() Config {
	c := testConfig(s.T)
	c.Interface, c.Mode = s.name, ModeAuto
	return c
}

// A NIC program joins those that xdp-loader loaded, by its priority, and stays while xdp-loader loads and unloads others.
func TestBeside(t *testing.T) {
	if !inOwnNamespaces(t) {
		return
	}
	s := newBeside(t)
	s.load("early", 10)
	s.load("late_with_a_long_name", 90)
	s.serves(true, false, true)
	c := s.config()
	n := open(t, c)
	if n.Mode() != ModeNative {
		t.Errorf("attached in mode %s", n.Mode())
	}
	deploy(t, n, version(t, 7, 1, packetSpec))
	s.serves(true, true, true)
	s.want("10 early", "50 ln_root", "90 late_with_a_long_name")
	wantRevision(t, n, 7, 1) // also without the dispatcher: so the gateway asks
	s.hasDemux(n)

	// Debian 12's xdp-loader cannot load a program beside it. Then it changes nothing.
	if out, err := exec.Command("xdp-loader", "load", "-n", "last", "-P", "95", s.name, filepath.Join(s.objects, "others.o")).CombinedOutput(); err != nil {
		t.Logf("%s", out)
		s.serves(true, true, true)
		s.want("10 early", "50 ln_root", "90 late_with_a_long_name")
		s.load("last", 95)
	}
	if err := n.Attached(); err != nil {
		t.Error(err)
	}
	s.serves(true, true, true)
	s.unload("early")
	s.want("50 ln_root", "90 late_with_a_long_name", "95 last")
	shut(t, n)

	n = open(t, c)
	if !n.Adopted() {
		t.Error("the NIC was not adopted")
	}
	deploy(t, n, version(t, 7, 2, packetSpec))
	wantRevision(t, n, 7, 2)
	s.serves(false, true, true)
	s.unload("last")
	s.unload("late_with_a_long_name")
	s.want("50 ln_root")
	s.serves(false, true, false)
	s.load("early", 10)
	if err := n.Attached(); err != nil {
		t.Error(err)
	}
	shut(t, n)
	if err := Down(t.Context(), c); err != nil {
		t.Error(err)
	}
	s.want("10 early")
	s.serves(true, false, false)
	s.unload("early")
	s.want()
}

// Where the NIC program was the only one left, nothing is left after it.
func TestBesideLast(t *testing.T) {
	if !inOwnNamespaces(t) {
		return
	}
	s := newBeside(t)
	s.load("early", 10)
	c := s.config()
	n := open(t, c)
	s.unload("early")
	s.want("50 ln_root")
	s.run("xdp-loader", "unload", "--all", s.name)
	if err := n.Attached(); err == nil {
		t.Error("the NIC program was unloaded, and the NIC does not say so")
	}
	shut(t, n)
	n = open(t, c) // alone
	if n.Adopted() {
		t.Error("a NIC without its program was adopted")
	}
	shut(t, n)
	if err := Down(t.Context(), c); err != nil {
		t.Error(err)
	}
	s.load("early", 10)
	shut(t, open(t, c))
	s.unload("early")
	if err := Down(t.Context(), c); err != nil {
		t.Error(err)
	}
	s.want()
	if id, _, err := xdp.Attached(s.index); id != 0 || err != nil {
		t.Errorf("program %d is left, %v", id, err)
	}
}

// A daemon may die after any step. The next one brings the NIC up all the same, and down leaves the others.
func TestBesideDies(t *testing.T) {
	if !inOwnNamespaces(t) {
		return
	}
	s := newBeside(t)
	s.load("early", 10)
	s.load("late_with_a_long_name", 90)
	for last, step := false, 1; !last; step++ {
		c := s.config()
		dying, left := c, step
		dying.failpoint = func(string) {
			if left--; left == 0 {
				runtime.Goexit()
			}
		}
		done := make(chan bool)
		go func() {
			up := false
			defer func() { done <- up }()
			n, err := Up(t.Context(), dying)
			if err != nil {
				t.Error(err)
				return
			}
			up = true
			shut(t, n)
		}()
		last = <-done
		n := open(t, c)
		deploy(t, n, version(t, 7, 1, packetSpec))
		s.serves(true, true, true)
		s.want("10 early", "50 ln_root", "90 late_with_a_long_name")
		shut(t, n)
		if err := Down(t.Context(), c); err != nil {
			t.Error(err)
		}
		s.want("10 early", "90 late_with_a_long_name")
		s.serves(true, false, true)
	}
}

// The interface goes, with a NIC program among others.
func TestBesideInterfaceGoes(t *testing.T) {
	if !inOwnNamespaces(t) {
		return
	}
	s := newBeside(t)
	s.load("early", 10)
	c := s.config()
	n := open(t, c)
	l, err := netlink.LinkByName(s.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkDel(l); err != nil {
		t.Fatal(err)
	}
	if err := n.Attached(); err == nil {
		t.Error("the interface is gone, and the NIC does not say so")
	}
	shut(t, n)
	if err := Down(t.Context(), c); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob("/sys/fs/bpf/xdp/*/prog1-*"); err != nil || len(left) > 0 {
		t.Errorf("pins of the NIC program are left: %v, %v", left, err)
	}
}

// What cannot be joined stays as it is, and the error says what it is and what to do.
func TestBesideRefuses(t *testing.T) {
	if !inOwnNamespaces(t) {
		return
	}
	s := newBeside(t)
	refused := func(c Config, texts ...string) {
		t.Helper()
		before, _, err := xdp.Attached(s.index)
		if err != nil {
			t.Fatal(err)
		}
		status := s.run("xdp-loader", "status", s.name)
		_, err = Up(t.Context(), c)
		for _, text := range texts {
			wantError(t, err, text)
		}
		t.Log(err)
		checkGone(t, c)
		if after, _, err := xdp.Attached(s.index); after != before || err != nil || s.run("xdp-loader", "status", s.name) != status {
			t.Errorf("program %d is attached, and was %d: %v", after, before, err)
		}
	}
	pass, err := xdp.Verdict(xdp.Pass)
	if err != nil {
		t.Fatal(err)
	}
	other, err := link.AttachXDP(link.XDPOptions{Program: pass, Interface: s.index})
	if err != nil {
		t.Fatal(err)
	}
	refused(s.config(), "another XDP program is attached", "ln_verdict", "xdp-loader load")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program comes off", func() bool {
		id, _, err := xdp.Attached(s.index)
		return id == 0 && err == nil
	})

	s.load("early", 10)
	c := s.config()
	c.Mode = ModeGeneric
	refused(c, "mode native")
	for range 9 {
		s.load("last", 95)
	}
	refused(s.config(), "10 XDP programs", "early", "xdp-loader unload")
	s.run("xdp-loader", "unload", "--all", s.name)

	later, err := ebpf.LoadCollectionSpec(filepath.Join(s.objects, "xdp-dispatcher.o"))
	if err != nil {
		t.Fatal(err)
	}
	if err := later.Variables["config"].Set(append([]byte{236, 3}, make([]byte, 122)...)); err != nil {
		t.Fatal(err)
	}
	coll, err := ebpf.NewCollection(later)
	if err != nil {
		t.Fatal(err)
	}
	defer coll.Close()
	if other, err = link.AttachXDP(link.XDPOptions{Program: coll.Programs["xdp_dispatcher"], Interface: s.index}); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = Up(t.Context(), s.config())
	wantError(t, err, "has version 3")
	wantError(t, err, "xdp-loader unload")
}

// While NICs come and go, the programs of others meet every packet.
func TestBesideGap(t *testing.T) {
	if !inOwnNamespaces(t) {
		return
	}
	s := newBeside(t)
	s.load("early", 10)
	seen, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4zero, Port: 9001})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	peer, err := net.InterfaceByName(s.peer)
	if err != nil {
		t.Fatal(err)
	}
	own, err := net.InterfaceByName(s.name)
	if err != nil {
		t.Fatal(err)
	}
	frame := datagramTo(peer.HardwareAddr, own.HardwareAddr, 9001)
	passed := datagramTo(peer.HardwareAddr, own.HardwareAddr, 9004)
	host, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4zero, Port: 9004})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	if err := host.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil { // a guest is slow
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	to := &unix.SockaddrLinklayer{Ifindex: peer.Index}
	stop, sent := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				sent <- n
				return
			default:
			}
			for range 10 {
				if err := unix.Sendto(fd, frame, 0, to); err == nil {
					n++
				}
			}
			time.Sleep(time.Millisecond) // the rest of the machine has its turn
		}
	}()
	if err := unix.Sendto(fd, passed, 0, to); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	if _, _, err := host.ReadFromUDP(b); err != nil { // what passes arrives
		t.Fatal(err)
	}
	c := s.config()
	for range 2 {
		shut(t, open(t, c))
		if err := Down(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	t.Logf("%d packets", <-sent)
	if err := unix.Sendto(fd, passed, 0, to); err != nil { // comes after all others
		t.Fatal(err)
	}
	if _, _, err := host.ReadFromUDP(b); err != nil {
		t.Fatal(err)
	}
	raw, err := seen.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if n, _, err := unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT); err == nil {
			t.Errorf("a datagram of %d bytes was dropped by no program", n)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// datagramTo is a frame of a datagram from 10.77.0.9 to a port of 10.77.0.1.
func datagramTo(from, to net.HardwareAddr, port uint16) []byte {
	b := append(append([]byte{}, to...), from...)
	b = append(b, 8, 0, 0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 9, 10, 77, 0, 1)
	sum := ^sum16(b[ethernetLen:])
	b[ethernetLen+10], b[ethernetLen+11] = byte(sum>>8), byte(sum)
	return append(b, 0x9c, 0x40, byte(port>>8), byte(port), 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
}
