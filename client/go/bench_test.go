package lambdanic_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// mirror answers every packet with itself as a response, by bare system calls on a thread of its own.
func mirror(b *testing.B) string {
	b.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	file, err := conn.File()
	if err != nil {
		b.Fatal(err)
	}
	address := conn.LocalAddr().String()
	conn.Close()
	fd := int(file.Fd())
	if err := unix.SetNonblock(fd, false); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 2048)
		for {
			n, peer, err := unix.Recvfrom(fd, buf, 0)
			if err != nil || n < api.RPCHeaderLen {
				return
			}
			buf[3] = byte(api.TypeResponse)
			if unix.Sendto(fd, buf[:n], 0, peer) != nil {
				return
			}
		}
	}()
	b.Cleanup(func() {
		if c, err := net.Dial("udp", address); err == nil {
			_, _ = c.Write([]byte("end"))
			c.Close()
		}
		<-ended
		file.Close()
	})
	return address
}

func bareSocket(b *testing.B, address string) int {
	b.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { unix.Close(fd) })
	to := netip.MustParseAddrPort(address)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
		b.Fatal(err)
	}
	return fd
}

// BenchmarkRoundTrip compares one caller's closed loop with a bare connected socket, which sends and receives the same
// bytes and looks at none of them.
func BenchmarkRoundTrip(b *testing.B) {
	h := api.Header{Type: api.TypeRequest, Workload: 1, Count: 1, Length: 16, MessageLen: 16}
	packet := append(h.Append(nil), make([]byte, 512)...)
	for _, spin := range []bool{false, true} {
		b.Run(fmt.Sprintf("bare/spin=%t", spin), func(b *testing.B) {
			fd := bareSocket(b, mirror(b))
			buf, flags := make([]byte, 2048), 0
			if spin {
				flags = unix.MSG_DONTWAIT
			}
			for b.Loop() {
				if _, err := unix.Write(fd, packet); err != nil {
					b.Fatal(err)
				}
				_, _, err := unix.Recvfrom(fd, buf, flags)
				for err == unix.EAGAIN {
					_, _, err = unix.Recvfrom(fd, buf, flags)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("conn/spin=%t", spin), func(b *testing.B) {
			var opts []lambdanic.Option
			if spin {
				opts = append(opts, lambdanic.WithSpin())
			}
			c, err := lambdanic.DialConn(mirror(b), opts...)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			loop(b, c.Call, 16, 0)
		})
	}
	b.Run("client", func(b *testing.B) {
		c, err := lambdanic.Dial(mirror(b))
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		loop(b, c.Call, 16, 0)
	})
}

func loop(b *testing.B, call func(context.Context, lambdanic.Request) (lambdanic.Response, error), size int, workload uint32) {
	b.Helper()
	b.ReportAllocs()
	req := lambdanic.Request{Workload: workload, Body: make([]byte, size)}
	resends := 0
	for b.Loop() {
		r, err := call(context.Background(), req)
		if err != nil {
			b.Fatal(err)
		}
		resends += r.Resends
	}
	if size > api.RPCMaxPayload {
		b.ReportMetric(float64(resends)/float64(b.N), "resends/op")
		b.SetBytes(int64(size))
	}
}

// BenchmarkImage is a 256 KiB request with a 64 KiB reply, back to back.
func BenchmarkImage(b *testing.B) {
	s, err := rpcserver.Start("127.0.0.1:0", workloads(7), rpcserver.Faults{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c, err := lambdanic.Dial(s.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	k, err := lambdanic.DialConn(s.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	for _, c := range []caller{{"client", c.Call}, {"conn", k.Call}} {
		b.Run(c.name, func(b *testing.B) { loop(b, c.call, 256<<10, greyStream) })
	}
}
