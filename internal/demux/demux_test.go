package demux

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// in runs a test on a thread of a network namespace of its own, in which interface lo is up.
func in(t *testing.T, f func() error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	if err := veth.In(isolated.Namespace(t, fmt.Sprintf("lndemux%d", os.Getpid())), f); err != nil {
		t.Fatal(err)
	}
}

// dropper is an ikernel that drops what it gets.
func dropper(t *testing.T) *Ikernel {
	t.Helper()
	prog, err := xdp.Verdict(xdp.Drop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	return &Ikernel{Program: prog, Next: nextMap(t)}
}

// sockets are of two servers.
type sockets [2]*net.UDPConn

func listen(t *testing.T) (s sockets) {
	t.Helper()
	for i := range s {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		s[i] = conn
	}
	return s
}

func (s sockets) port(i int) uint16 { return uint16(s[i].LocalAddr().(*net.UDPAddr).Port) }

// patience is how long a datagram may take, and quiet how long none comes where none is expected.
const (
	patience = 20 * time.Second
	quiet    = 50 * time.Millisecond
)

// check checks which of the servers get a datagram.
func (s sockets) check(t *testing.T, when string, want [2]bool) {
	t.Helper()
	for i, conn := range s {
		out, err := net.Dial("udp", conn.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = out.Write([]byte("x"))
		if err := errors.Join(err, out.Close()); err != nil {
			t.Fatal(err)
		}
		wait := quiet
		if want[i] {
			wait = patience
		}
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		if _, err = conn.Read(make([]byte, 1)); (err == nil) != want[i] {
			t.Errorf("%s: server %d: %v, want a datagram: %v", when, i+1, err, want[i])
		}
	}
}

// TestShare attaches two ikernels to one interface. Each gets the datagrams to its port, and the servers those of the ports without one.
func TestShare(t *testing.T) {
	in(t, func() error {
		d, drop, s := New(nil), dropper(t), listen(t)
		s.check(t, "before", [2]bool{true, true})
		var ports [2]*Attachment
		for i := range ports {
			var err error
			if ports[i], err = d.Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(i)); err != nil {
				return err
			}
			s.check(t, fmt.Sprintf("with %d ikernels", i+1), [2]bool{false, i == 0})
		}
		if mode := ports[1].Ports()[0].Mode; mode != xdp.ModeGeneric {
			t.Errorf("lo is in mode %s", mode)
		}
		for i, p := range ports {
			if err := errors.Join(p.Ports()[0].Attached(), p.Close()); err != nil {
				return err
			}
			s.check(t, fmt.Sprintf("after %d were detached", i+1), [2]bool{true, i == 1})
		}
		id, _, err := xdp.Attached(1)
		if err == nil && id != 0 {
			t.Error("the last ikernel leaves a program on the interface")
		}
		return err
	})
}

// TestRefuse asks for ports and interfaces that cannot be had. Who has them keeps them.
func TestRefuse(t *testing.T) {
	in(t, func() error {
		d, drop, s := New(nil), dropper(t), listen(t)
		p, err := d.Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(0))
		if err != nil {
			return err
		}
		for want, attach := range map[string]func() (*Attachment, error){
			"the ikernel has it":          func() (*Attachment, error) { return d.Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(0)) },
			"choose that mode, or auto":   func() (*Attachment, error) { return d.Attach(drop, []string{"lo"}, xdp.ModeNative, s.port(1)) },
			"no such network interface":   func() (*Attachment, error) { return d.Attach(drop, []string{"nothere"}, xdp.ModeAuto, s.port(1)) },
			"another XDP program is atta": func() (*Attachment, error) { return New(nil).Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(1)) },
		} {
			if _, err := attach(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		s.check(t, "after refusals", [2]bool{false, true})
		return p.Close()
	})
}

// TestFound attaches an ikernel to a root that is there already, and keeps a port of its own.
func TestFound(t *testing.T) {
	in(t, func() error {
		there, drop, s := New(nil), dropper(t), listen(t)
		first, err := there.Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(0))
		if err != nil {
			return err
		}
		found, closed := 0, 0
		lost := errors.New("lost")
		var state error
		d := New(func(id ebpf.ProgramID) (*Root, error) {
			if id != first.Ports()[0].root {
				t.Errorf("asked for program %d, want %d", id, first.Ports()[0].root)
			}
			found++
			root := *first.Ports()[0].on.Root
			root.Takes = func(port uint16) bool { return port == s.port(0) }
			root.Attached = func() error { return state }
			root.Close = func() error { closed++; return nil }
			return &root, nil
		})
		if _, err := d.Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(0)); err == nil || !strings.Contains(err.Error(), "lambdas are reached") {
			t.Errorf("got %v for a port that the root serves", err)
		}
		second, err := d.Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(1))
		if err != nil {
			return err
		}
		s.check(t, "with both", [2]bool{false, false})
		if _, err := d.Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(1)); err == nil || found != 2 {
			t.Errorf("got %v for a port that is taken, and the root was found %d times", err, found)
		}
		state = lost
		if err := second.Ports()[0].Attached(); !errors.Is(err, lost) {
			t.Errorf("got %v when the root is lost", err)
		}
		if _, err := d.Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(1)); err == nil || found != 3 {
			t.Errorf("got %v for a port that a lost root has, and the root was found %d times", err, found)
		}
		err = second.Close()
		s.check(t, "with the first", [2]bool{false, true})
		if closed != found {
			t.Errorf("roots were found %d times and closed %d times", found, closed)
		}
		return errors.Join(err, first.Close())
	})
}

// TestLostInterface takes an interface away.
func TestLostInterface(t *testing.T) {
	in(t, func() error {
		pair := netlink.NewVeth(netlink.LinkAttrs{Name: "a"})
		pair.PeerName = "b"
		if err := netlink.LinkAdd(pair); err != nil {
			return err
		}
		d, drop := New(nil), dropper(t)
		p, err := d.Attach(drop, []string{"a"}, xdp.ModeNative, 1)
		if err != nil {
			return err
		}
		if mode := p.Ports()[0].Mode; mode != xdp.ModeNative {
			t.Errorf("it is in mode %s", mode)
		}
		if err := errors.Join(p.Ports()[0].Attached(), veth.Remove("a")); err != nil {
			return err
		}
		if err := p.Ports()[0].Attached(); err == nil || !strings.Contains(err.Error(), "interface a has lost") {
			t.Errorf("got %v when the interface is gone", err)
		}
		return p.Close()
	})
}

// TestForgotten ends the only reference of user space to the ikernels, as the end of a daemon does: the kernel forgets them, while the root serves on.
func TestForgotten(t *testing.T) {
	in(t, func() error {
		d, drop, s := New(nil), dropper(t), listen(t)
		p, err := d.Attach(drop, []string{"lo"}, xdp.ModeAuto, s.port(0))
		if err != nil {
			return err
		}
		s.check(t, "before", [2]bool{false, true})
		info, err := p.Ports()[0].on.Ikernels.Info()
		if err != nil {
			return err
		}
		number, _ := info.ID()
		if err := p.Ports()[0].on.Ikernels.Close(); err != nil {
			return err
		}
		again, err := ebpf.NewMapFromID(number) // as the next daemon does
		if err != nil {
			return err
		}
		defer again.Close()
		var left uint32
		for deadline := time.Now().Add(patience); again.Lookup(uint32(s.port(0)), &left) == nil; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return errors.New("the kernel does not forget the ikernels")
			}
		}
		s.check(t, "after", [2]bool{true, true})
		if err := again.Put(uint32(s.port(0)), drop.Program); err != nil {
			return err
		}
		s.check(t, "after the next daemon came", [2]bool{false, true})
		_ = p.Close() // the link; the map is closed
		return nil
	})
}
