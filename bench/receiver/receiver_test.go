package receiver

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/link/linktest"
)

// The count is that of an ordinary socket's datagrams, and of this port alone.
func TestDatagramsAreCounted(t *testing.T) {
	p := linktest.New(t)
	r, err := Open(p, 4375)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const sent = 20
	for _, port := range []uint16{4376, 4375} {
		conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Peer.Addr, port)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for range sent {
			_, _ = conn.Write([]byte("datagram")) // the other port refuses
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		n, err := r.Received()
		if err != nil {
			t.Fatal(err)
		}
		if n == sent {
			return
		}
		if n > sent || time.Now().After(deadline) {
			t.Fatalf("%d datagrams sent, %d counted", sent, n)
		}
	}
}
