package ikernels

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
)

// TestList lists ikernels with what they have and did, those of one process together.
func TestList(t *testing.T) {
	s := newSite(t)
	first, other, second := s.create("faulty"), s.create("passthrough"), s.create("echo")
	first.SetOwner(Owner{7, "one"})
	other.SetOwner(Owner{8, "two"})
	second.SetOwner(Owner{7, "one"})
	server, wide := s.listen("127.0.0.1:0"), s.listen("0.0.0.0:0")
	attach(t, first, server)
	attach(t, second, wide)
	client := s.dial(server.LocalAddr().String())
	send(t, client, "a")
	expect(t, "client", client, "a")
	list := func() string {
		t.Helper()
		all, err := s.host.List()
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, d := range all {
			text += fmt.Sprintf("%s %d %v %v %v %v\n", d.Ikernel, d.Number, d.Owner, d.Sockets, d.Verdicts, d.Fault != nil)
		}
		return text
	}
	address := func(c *net.UDPConn) netip.AddrPort {
		a := c.LocalAddr().(*net.UDPAddr).AddrPort()
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	const none = "invalid AddrPort"
	rest := fmt.Sprintf("echo 3 {7 one} [{udp %s %s}] {0 0 0} false\npassthrough 2 {8 two} [] {0 0 0} false\n", address(wide), none)
	if got, want := list(), fmt.Sprintf("faulty 1 {7 one} [{udp %s %s}] {0 0 1} false\n", address(server), none)+rest; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	send(t, client, "f")
	expect(t, "server", server, "f")
	if got, want := list(), "faulty 1 {7 one} [] {1 0 1} true\n"+rest; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if err := wide.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := list(), "faulty 1 {7 one} [] {1 0 1} true\necho 3 {7 one} [] {0 0 0} false\npassthrough 2 {8 two} [] {0 0 0} false\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
