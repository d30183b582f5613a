package link

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/internal/veth"
)

func newPair(t *testing.T, o Options) *Pair {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and namespaces: run as root")
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestPairCarriesPackets(t *testing.T) {
	for _, o := range []Options{{}, {Queues: 1}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			checkTraffic(t, newPair(t, o))
		})
	}
}

func TestThreadedPairCarriesPackets(t *testing.T) {
	p := newPair(t, Options{})
	for _, attach := range []func() (Attachment, error){p.PassHost, p.PassPeer} {
		a, err := attach()
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
	}
	for _, on := range []bool{true, false} {
		if err := p.SetThreaded(on); err != nil {
			t.Fatal(err)
		}
		checkTraffic(t, p)
	}
}

// checkTraffic sends a datagram to the far end.
func checkTraffic(t *testing.T, p *Pair) {
	t.Helper()
	var far net.PacketConn
	err := p.In(func() (err error) {
		far, err = net.ListenPacket("udp4", net.JoinHostPort(p.Peer.Addr.String(), "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	near, err := net.Dial("udp4", far.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	if _, err := near.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	if err := far.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	n, from, err := far.ReadFrom(b)
	if err != nil || string(b[:n]) != "hello" || from.String() != near.LocalAddr().String() {
		t.Errorf("got %q from %v, %v; want hello from %v", b[:n], from, err, near.LocalAddr())
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	p := newPair(t, Options{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := netlink.LinkByName(p.Host.Name); !errors.As(err, new(netlink.LinkNotFoundError)) {
		t.Errorf("interface %s after Close: got %v, want none", p.Host.Name, err)
	}
	if _, err := os.Stat(filepath.Join(veth.Namespaces, p.Namespace)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("namespace %s after Close: got %v, want none", p.Namespace, err)
	}
}

func TestSweepRemovesWhatTheDeadLeft(t *testing.T) {
	p := newPair(t, Options{})
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%s%d-0", prefix, dead.Process.Pid)
	ns, err := veth.NewNamespace(name)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	half := fmt.Sprintf("%s%d-1", prefix, dead.Process.Pid)
	if err := os.WriteFile(filepath.Join(veth.Namespaces, half), nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(); err != nil {
		t.Error(err)
	}
	for _, gone := range []string{name, half} {
		if _, err := os.Stat(filepath.Join(veth.Namespaces, gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("namespace %s of a dead process: got %v, want none", gone, err)
		}
	}
	if _, err := os.Stat(filepath.Join(veth.Namespaces, p.Namespace)); err != nil {
		t.Errorf("namespace of this process: %v", err)
	}
}

func TestOwner(t *testing.T) {
	for name, want := range map[string]int{"lnb123-4": 123, "lnb123-4h": 123, "lnb-4": 0, "lnb1-4": 0, "lnb123": 0, "blue": 0, "lnbx-1": 0} {
		if pid, ok := owner(name); ok != (want != 0) || ok && pid != want {
			t.Errorf("owner(%q): got %d, %v; want %d", name, pid, ok, want)
		}
	}
}
