package ikernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/live"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// A timed ikernel is attached to a socket.
type timed struct {
	*Ikernel
	server *net.UDPConn
	in     func(func() error)
}

// attached makes an ikernel with a socket.
func attached(b *testing.B, name string) *timed {
	b.Helper()
	host, err := NewHost(demux.New(nil))
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { _ = host.Close() })
	k, err := host.Create(name, nil)
	if err != nil {
		b.Fatal(err)
	}
	ns := isolated.Namespace(b, fmt.Sprintf("lnikb%d", os.Getpid()))
	in := func(f func() error) {
		if err := veth.In(ns, f); err != nil {
			b.Fatal(err)
		}
	}
	var server *net.UDPConn
	in(func() (err error) {
		server, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		return err
	})
	b.Cleanup(func() { server.Close() })
	if err := with(b, server, k.Attach); err != nil {
		b.Fatal(err)
	}
	return &timed{k, server, in}
}

// time has datagrams of so many bytes come.
func (k *timed) time(b *testing.B, size int) {
	frame := append(make([]byte, 12), 8, 0, 0x45, 0)
	frame = append(binary.BigEndian.AppendUint16(frame, uint16(28+size)), 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1, 4, 0)
	frame = append(binary.BigEndian.AppendUint16(frame, uint16(k.server.LocalAddr().(*net.UDPAddr).Port)), byte((8+size)>>8), byte(8+size), 0, 0)
	frame = append(frame, make([]byte, size)...)
	k.in(func() error {
		_, took, err := k.at.Program.Benchmark(frame, b.N, nil)
		b.ReportMetric(float64(took.Nanoseconds()), "ns/datagram")
		return err
	})
}

// BenchmarkDatagram times the program of an ikernel that does nothing, with a datagram to a socket, and after a fault.
func BenchmarkDatagram(b *testing.B) {
	k := attached(b, "passthrough")
	b.Run("serves", func(b *testing.B) { k.time(b, 64) })
	if v, err := k.verdicts(); err != nil || v.Passed == 0 {
		b.Fatalf("the ikernel has not got the datagrams: %v, %v", v, err)
	}
	if err := k.coll.Variables["ik_faulted"].Set(uint32(1)); err != nil {
		b.Fatal(err)
	}
	b.Run("faulted", func(b *testing.B) { k.time(b, 64) })
}

// BenchmarkMetered times an ikernel that does nothing, alone and where it is of a namespace without limits, with quotas, with a share of more than a CPU has, and
// with a share of nothing.
func BenchmarkMetered(b *testing.B) {
	many := uint64(1e12)
	for _, c := range []struct {
		name   string
		budget uint64
		quotas map[uint32]api.Quota
	}{
		{"alone", 0, nil}, {"unlimited", 0, map[uint32]api.Quota{1: {}}}, {"quotas", 0, map[uint32]api.Quota{1: {Requests: &many, NICTime: &many}}},
		{"share", plenty, map[uint32]api.Quota{1: {}}}, {"refused", 1, map[uint32]api.Quota{1: {}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			k := attached(b, "passthrough")
			if c.quotas != nil {
				if err := k.join(Namespace{"tenant", 1, newLimits(b, c.budget, c.quotas)}); err != nil {
					b.Fatal(err)
				}
			}
			k.time(b, 64)
		})
	}
}

// BenchmarkChain times so many ikernels at one socket, each of which passes the datagrams on to the next.
func BenchmarkChain(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := attached(b, "passthrough")
			for range n - 1 {
				next, err := k.host.Create("passthrough", nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := with(b, k.server, next.Attach); err != nil {
					b.Fatal(err)
				}
			}
			k.time(b, 64)
		})
	}
}

// BenchmarkParity times parity with groups of 4, and replicate with as many rings. Nobody reads them, so that they are full after a moment: what they take is
// without copying into a ring, unless there are so few datagrams that all fit (-benchtime 20000x).
func BenchmarkParity(b *testing.B) {
	for _, name := range []string{"passthrough", "replicate", "parity"} {
		for _, size := range []int{64, 512, 1472} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				k := attached(b, name)
				if name != "passthrough" {
					if _, err := k.OpenRings(Rings{Count: 5, Size: 1 << 25}); err != nil {
						b.Fatal(err)
					}
				}
				if name == "parity" {
					if _, err := transact(k.Ikernel, nil, named{"shards": 4}); err != nil {
						b.Fatal(err)
					}
				}
				k.time(b, size)
			})
		}
	}
}

// BenchmarkCoalesce times an update of a key that is there already, with a value of 32 bytes, and the same datagram with an ikernel that does nothing.
func BenchmarkCoalesce(b *testing.B) {
	for _, name := range []string{"passthrough", "coalesce"} {
		b.Run(name, func(b *testing.B) {
			k := attached(b, name)
			if name == "coalesce" {
				if _, err := k.OpenRings(Rings{Count: 1, Size: 1 << 20}); err != nil {
					b.Fatal(err)
				}
				if _, err := transact(k.Ikernel, nil, named{"key": 8, "value": 32}); err != nil {
					b.Fatal(err)
				}
			}
			k.time(b, 40)
			if name == "coalesce" {
				if r, err := transact(k.Ikernel, nil, nil); err != nil || r["updates"] != r["coalesced"]+1 {
					b.Errorf("the registers are %v, %v", r, err)
				}
			}
		})
	}
}

// BenchmarkGenerator sends datagrams by one thread, to a veth whose other end drops them at once: by generator as fast as it goes, and by sendmmsg of 64 each.
func BenchmarkGenerator(b *testing.B) {
	for _, size := range []int{64, 512, 1472} {
		b.Run(fmt.Sprintf("generator/%d", size), func(b *testing.B) {
			w := newWire(b)
			w.treat(xdpDrop)
			_, client := w.peer("10.77.0.1", "10.77.0.2", wirePort)
			k := w.create("generator")
			attach(b, k, client)
			if err := note(b, k, nowhere, nowhere, message(size)); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			write(b, k, named{"count": uint64(b.N), "running": 1})
			r := awaitSent(b, k)
			b.ReportMetric(float64(r["sent"])/b.Elapsed().Seconds(), "datagrams/s")
			b.ReportMetric(float64(r["refused"])/float64(b.N), "refused/op")
		})
		b.Run(fmt.Sprintf("sendmmsg/%d", size), func(b *testing.B) {
			w := newWire(b)
			w.treat(xdpDrop)
			_, client := w.peer("10.77.0.1", "10.77.0.2", wirePort)
			messages := newMessages(message(size))
			b.ResetTimer()
			if err := with(b, client, func(fd int) error { return errors.Join(unix.SetNonblock(fd, false), messages.send(fd, b.N)) }); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "datagrams/s")
		})
	}
}

// messages are what sendmmsg sends at once.
type messages [64]struct {
	unix.Msghdr
	sent uint32
	_    uint32
}

func newMessages(message []byte) *messages {
	m := &messages{}
	for i := range m {
		part := unix.Iovec{Base: &message[0]}
		part.SetLen(len(message))
		m[i].Iov = &part
		m[i].SetIovlen(1)
	}
	return m
}

func (m *messages) send(fd, n int) error {
	for n > 0 {
		sent, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), uintptr(min(n, len(m))), 0, 0, 0)
		if errno != 0 {
			return errno
		}
		n -= int(sent)
	}
	return nil
}

// BenchmarkGeneratorCall times what the daemon does for one datagram that is due alone.
func BenchmarkGeneratorCall(b *testing.B) {
	w := newWire(b)
	w.treat(xdpDrop)
	_, client := w.peer("10.77.0.1", "10.77.0.2", wirePort)
	k := w.create("generator")
	attach(b, k, client)
	if err := note(b, k, nowhere, nowhere, message(64)); err != nil {
		b.Fatal(err)
	}
	write(b, k, named{"count": 1, "running": 1})
	awaitSent(b, k)
	program, index := k.coll.Programs["generator_send"], 0
	w.in(func() error {
		l, err := net.InterfaceByName("lngen0")
		if err == nil {
			index = l.Index
		}
		return err
	})
	for _, n := range []uint32{1, 2, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w.in(func() error {
				for b.Loop() {
					f := live.Frames{Program: program, Length: 106, Batch: 1, Interface: index, Count: n}
					if err := f.Do(); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
