package session

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// BenchmarkReceive reads datagrams of 64 bytes from a ring and from a socket, without and with an ikernel that does nothing. ns/receive is what reading takes
// of one that is there already; ns/op has its sending, too, which on loopback includes the kernel's way to the receiver.
func BenchmarkReceive(b *testing.B) {
	rings := lambdanic.Rings{Count: 1, Size: 1 << 20}
	b.Run("poll", func(b *testing.B) {
		rings := rings
		rings.Polled = true
		s := steer(b, "steering", rings, nil)
		receiveAll(b, s.dial(), func() {
			for ok := false; !ok; {
				_, ok = s.rings[0].Poll()
			}
		})
	})
	b.Run("read", func(b *testing.B) {
		s := steer(b, "steering", rings, nil)
		receiveAll(b, s.dial(), func() {
			if _, err := s.rings[0].Read(); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("socket", func(b *testing.B) {
		server, client := pair(b)
		receiveAll(b, client, func() { readSocket(b, server) })
	})
	b.Run("socket with passthrough", func(b *testing.B) {
		server, client := pair(b)
		if err := create(b, open(b, serve(b)), "passthrough").Attach(server); err != nil {
			b.Fatal(err)
		}
		receiveAll(b, client, func() { readSocket(b, server) })
	})
}

func readSocket(b *testing.B, server *net.UDPConn) {
	var message [100]byte
	if _, err := server.Read(message[:]); err != nil {
		b.Fatal(err)
	}
}

// receiveAll has batches sent, and receives them.
func receiveAll(b *testing.B, client *net.UDPConn, receive func()) {
	const batch = 100 // fits a socket's buffer
	isolated.Pin(b, 0)
	message := bytes.Repeat([]byte{1}, 64)
	var took time.Duration
	b.ResetTimer()
	for left := b.N; left > 0; left -= batch {
		for range min(batch, left) {
			if _, err := client.Write(message); err != nil {
				b.Fatal(err)
			}
		}
		begin := time.Now()
		for range min(batch, left) {
			receive()
		}
		took += time.Since(begin)
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/receive")
}

// BenchmarkAlert sends a message by TCP, and waits until the server has it: from its socket, or as an alert of threshold from a polled ring.
func BenchmarkAlert(b *testing.B) {
	message := []byte{0, 0, 0, 1}
	b.Run("socket", func(b *testing.B) {
		server, client := stream(b, nil)
		exchangeAll(b, client, message, func() {
			if _, err := io.ReadFull(server, make([]byte, len(message))); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("ring", func(b *testing.B) {
		k := create(b, open(b, serve(b)), "threshold")
		rings, err := k.OpenRings(lambdanic.Rings{Count: 1, Size: 1 << 16, Polled: true})
		if err != nil {
			b.Fatal(err)
		}
		_, client := stream(b, k)
		exchangeAll(b, client, message, func() {
			for ok := false; !ok; {
				_, ok = rings[0].Poll()
			}
		})
	})
}

// exchangeAll has a message sent, and received, again and again.
func exchangeAll(b *testing.B, client net.Conn, message []byte, receive func()) {
	b.ResetTimer()
	for range b.N {
		if _, err := client.Write(message); err != nil {
			b.Fatal(err)
		}
		receive()
	}
}
