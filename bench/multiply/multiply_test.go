package multiply

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/link/linktest"
)

// Both ways bring a socket the same bytes, each packet once.
func TestRepliesAreWhole(t *testing.T) {
	pair := linktest.New(t)
	pass, err := pair.PassHost()
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Close()
	for _, way := range []struct {
		name   string
		attach func(*link.Pair, int) (link.Attachment, error)
		pulled bool
	}{{"pull", AttachPull, true}, {"multiply", AttachMultiply, false}} {
		for _, packets := range []int{1, 2, MaxPackets} {
			t.Run(fmt.Sprint(way.name, packets), func(t *testing.T) {
				a, err := way.attach(pair, packets)
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				sent := 1
				if way.pulled {
					sent = packets
				}
				if got := ask(t, pair, sent, packets); !bytes.Equal(got, Text()[:packets*Size]) {
					t.Error("the reply is not the text")
				}
			})
		}
	}
}

// ask sends that many packets, padded to the size of a reply's, and puts the reply together.
func ask(t *testing.T, pair *link.Pair, sent, packets int) []byte {
	t.Helper()
	conn, err := net.Dial("udp4", net.JoinHostPort(pair.Peer.Addr.String(), fmt.Sprint(api.RPCPort)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for i := range sent {
		h := api.Header{Type: api.TypePull, Index: uint32(i), Count: uint32(packets)}
		if _, err := conn.Write(append(h.Append(nil), make([]byte, Size)...)); err != nil {
			t.Fatal(err)
		}
	}
	text, seen := make([]byte, packets*Size), map[uint32]bool{}
	for b := make([]byte, 2048); len(seen) < packets; {
		n, err := conn.Read(b)
		if err != nil {
			t.Fatalf("after %d of %d packets: %v", len(seen), packets, err)
		}
		h, payload, err := api.ParsePacket(b[:n])
		if err != nil || h.Type != api.TypeResponse || len(payload) != Size || int(h.Index) >= packets || seen[h.Index] {
			t.Fatalf("got %+v with %d bytes, %v", h, len(payload), err)
		}
		seen[h.Index] = true
		copy(text[int(h.Index)*Size:], payload)
	}
	return text
}
