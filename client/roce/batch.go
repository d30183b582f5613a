package roce

import (
	"net/netip"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api/roce"
)

// Bounds of a batch: UDP segmentation takes at most 64 packets (UDP_MAX_SEGMENTS of kernels before 6.9) and one datagram's worth of
// bytes, of which IPv6 leaves the least.
const (
	batchPackets = 64
	batchBytes   = 65535 - 40 - 8
)

// A batch is datagrams to one address, for sendmmsg(2). A row of equally long datagrams goes to the kernel as one, which splits them
// (UDP_SEGMENT) and numbers them from 0 on in IPv4's identification (inet_gso_segment() in net/ipv4/af_inet.c), which the ICRC covers. Its
// memory is used again and again.
type batch struct {
	to   netip.AddrPort
	name [unix.SizeofSockaddrInet6]byte
	size uint32 // of name
	buf  []byte
	rows []row
	iovs [batchPackets]unix.Iovec
	ctls [batchPackets]control
	msgs [batchPackets]mmsghdr
	n    int // packets
}

// A row is datagrams of one size; only the last may be shorter.
type row struct {
	from, size, count int
	closed            bool
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

// control is room for one control message with a 16-bit value.
type control struct {
	hdr  unix.Cmsghdr
	data [8]byte
}

func newBatch(to netip.AddrPort) *batch {
	b := &batch{to: to}
	port := [2]byte{byte(to.Port() >> 8), byte(to.Port())}
	if to.Addr().Is4() {
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&b.name))
		sa.Family, sa.Port, sa.Addr = unix.AF_INET, *(*uint16)(unsafe.Pointer(&port)), to.Addr().As4()
		b.size = unix.SizeofSockaddrInet4
	} else {
		sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(&b.name))
		sa.Family, sa.Port, sa.Addr = unix.AF_INET6, *(*uint16)(unsafe.Pointer(&port)), to.Addr().As16()
		b.size = unix.SizeofSockaddrInet6
	}
	return b
}

func (b *batch) reset()     { b.buf, b.rows, b.n = b.buf[:0], b.rows[:0], 0 }
func (b *batch) full() bool { return b.n == batchPackets }

// add appends a packet and its ICRC. Rows of more than one packet are for endpoints that segment.
func (b *batch) add(p *Packet, path Path, segment bool) {
	size := p.Op.HeaderLen() + (len(p.Payload)+3)&^3 + roce.ICRCLen
	r := b.place(size, segment)
	path.ID = uint16(r.count)
	from := len(b.buf)
	b.buf = p.Append(b.buf)
	crc := path.ICRC(b.buf[from:])
	b.buf = append(b.buf, byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24))
	r.count++
	b.n++
}

// place finds the row that a packet of a size belongs to.
func (b *batch) place(size int, segment bool) *row {
	if n := len(b.rows); n > 0 {
		r := &b.rows[n-1]
		if segment && !r.closed && size <= r.size && (r.count+1)*r.size <= batchBytes {
			r.closed = size < r.size
			return r
		}
	}
	b.rows = append(b.rows, row{from: len(b.buf), size: size})
	return &b.rows[len(b.rows)-1]
}

// end is where a row ends in buf.
func (b *batch) end(i int) int {
	if i+1 < len(b.rows) {
		return b.rows[i+1].from
	}
	return len(b.buf)
}

// send gives all datagrams to the socket, and waits while it is full. Datagrams that the network refuses count as lost.
func (b *batch) send(e *Endpoint) error {
	if e.Through != nil {
		b.impaired(e)
		return nil
	}
	for i, r := range b.rows {
		b.iovs[i].Base = &b.buf[r.from]
		b.iovs[i].SetLen(b.end(i) - r.from)
		b.msgs[i].hdr = unix.Msghdr{Name: &b.name[0], Namelen: b.size, Iov: &b.iovs[i], Iovlen: 1}
		if r.count > 1 {
			c := &b.ctls[i]
			c.hdr.Level, c.hdr.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
			c.hdr.SetLen(unix.CmsgLen(2))
			*(*uint16)(unsafe.Pointer(&c.data)) = uint16(r.size)
			b.msgs[i].hdr.Control = (*byte)(unsafe.Pointer(c))
			b.msgs[i].hdr.SetControllen(unix.CmsgSpace(2))
		}
	}
	for sent := 0; sent < len(b.rows); {
		var n uintptr
		var errno unix.Errno
		err := e.raw.Write(func(fd uintptr) bool {
			n, _, errno = unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&b.msgs[sent])), uintptr(len(b.rows)-sent), unix.MSG_DONTWAIT, 0, 0)
			return errno != unix.EAGAIN
		})
		runtime.KeepAlive(b)
		switch {
		case err != nil:
			return err
		case errno == unix.EMSGSIZE:
			return errno
		case errno == unix.EINTR:
			n = 0
		case errno != 0:
			if b.rows[sent].count > 1 {
				e.single.Store(true) // kernels before 6.11 refuse to segment where the interface computes no checksums
			}
			n = 1
		}
		sent += int(n)
	}
	return nil
}

// impaired gives the datagrams to whatever stands between here and the network.
func (b *batch) impaired(e *Endpoint) {
	for i, r := range b.rows {
		e.Through(b.buf[r.from:b.end(i)], func(p []byte) { _, _ = e.conn.WriteToUDPAddrPort(p, b.to) })
	}
}
