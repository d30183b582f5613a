package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// wired makes a server and a client at the ends of a pair, by which XDP can send.
func wired(t *testing.T) (server, client *net.UDPConn) {
	t.Helper()
	name := fmt.Sprintf("lnwire%d", os.Getpid())
	near, far := isolated.Namespace(t, name), isolated.Namespace(t, name+"f")
	address := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	pass, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pass.Close() })
	var end veth.End
	err = veth.In(near, func() (err error) {
		_, end, err = veth.New(veth.Side{Name: "lngen0", Addrs: address("10.77.0.1/24")}, veth.Side{Name: "lngen1", Addrs: address("10.77.0.2/24")}, far, 1)
		return err
	})
	if err == nil {
		err = veth.In(far, func() error {
			l, err := link.AttachXDP(link.XDPOptions{Program: pass, Interface: end.Index, Flags: link.XDPDriverMode})
			if err != nil {
				return err
			}
			t.Cleanup(func() { l.Close() })
			server, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(10, 77, 0, 2)})
			return err
		})
	}
	if err == nil {
		err = veth.In(near, func() (err error) {
			client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

// TestGeneratorEnds has an application end whose ikernel sends: it stops.
func TestGeneratorEnds(t *testing.T) {
	a := open(t, serve(t))
	server, client := wired(t)
	k := create(t, a, "generator")
	if err := k.Attach(client); err != nil {
		t.Fatal(err)
	}
	notes, err := k.OpenNotes()
	if err != nil {
		t.Fatal(err)
	}
	b, err := notes.Reserve(8 + 16)
	if err != nil {
		t.Fatal(err)
	}
	binary.NativeEndian.PutUint32(b, 8)
	binary.NativeEndian.PutUint32(b[4:], 0xffffffff)
	copy(b[8:], "message.")
	if _, err := notes.Deliver(); err != nil {
		t.Fatal(err)
	}
	if err := k.Write(map[string]int64{"interval": 100000, "running": 1}); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	for i := range 10 {
		_ = server.SetReadDeadline(time.Now().Add(patience))
		if n, err := server.Read(got); err != nil || n != 16 || string(got[:8]) != "message." {
			t.Fatalf("datagram %d: got %q, %v", i, got[:n], err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		_ = server.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := server.Read(got); errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("datagrams come from an application that has ended")
		}
	}
}
