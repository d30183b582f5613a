package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// BenchmarkUpdates keeps the newest value of each of 300 keys in a map: from a socket, and by coalesce with a batch each 10 ms. A thread sends as fast as it can, and
// the application has the other CPU. Its CPU time is that for each update that it got; lost are those that the socket had no room for.
func BenchmarkUpdates(b *testing.B) {
	b.Run("socket", func(b *testing.B) {
		server, client := pair(b)
		updateAll(b, client, func(table map[string]string) (updates int, err error) {
			var m [100]byte
			n, err := server.Read(m[:])
			if err != nil {
				return 0, err
			}
			table[string(m[:8])] = string(m[8:n])
			return 1, nil
		}, server.SetReadDeadline)
	})
	b.Run("coalesce", func(b *testing.B) {
		s := coalesce(b, 1<<20, map[string]int64{"key": 8, "value": 32, "interval": 10_000})
		updateAll(b, s.dial(), func(table map[string]string) (updates int, err error) {
			m, err := s.rings[0].Read()
			if err != nil {
				return 0, err
			}
			batch, err := lambdanic.ParseBatch(m.Data)
			if err != nil {
				return 0, err
			}
			for key, value := range batch.All() {
				table[string(key)] = string(value)
			}
			return int(batch.Updates), nil
		}, s.rings[0].SetReadDeadline)
	})
}

// updateAll sends updates, and reads until none came for a moment.
func updateAll(b *testing.B, client *net.UDPConn, read func(map[string]string) (int, error), setDeadline func(time.Time) error) {
	const keys, idle = 300, 500 * time.Millisecond
	sent := make(chan time.Duration, 1)
	_ = setDeadline(time.Time{})
	go func() {
		isolated.Pin(b, 0)
		begin := time.Now()
		var m [40]byte
		for n := range uint64(b.N) {
			binary.BigEndian.PutUint64(m[:], n*n%keys)
			binary.BigEndian.PutUint64(m[8:], n)
			_, _ = client.Write(m[:])
		}
		took := time.Since(begin)
		_ = setDeadline(time.Now().Add(idle))
		sent <- took
	}()
	isolated.Pin(b, 1)
	begin, got, table := threadTime(b), 0, map[string]string{}
	for {
		n, err := read(table)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		got += n
	}
	took := <-sent
	b.ReportMetric(float64(got)/took.Seconds(), "updates/s")
	b.ReportMetric(float64(b.N-got)/float64(b.N)*100, "%lost")
	b.ReportMetric(float64(threadTime(b)-begin)/float64(max(got, 1)), "CPU-ns/update")
}

// threadTime is the CPU time of this thread.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkFlush asks for a batch of so many keys, of none for comparison: that is sorted and copied before the call returns.
func BenchmarkFlush(b *testing.B) {
	for _, keys := range []uint64{0, 300, 1024} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			s := coalesce(b, 1<<20, map[string]int64{"key": 8, "value": 32})
			client, sent, took := s.dial(), int64(0), time.Duration(0)
			for range b.N {
				for i := range keys {
					s.send(client, binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15))
				}
				sent += int64(keys)
				s.awaitAll(sent)
				begin := time.Now()
				s.flush()
				took += time.Since(begin)
				s.rings[0].Poll()
				s.rings[0].Release()
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "us/flush")
		})
	}
}
