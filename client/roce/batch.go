package roce

import (
	"net/netip"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchPackets is how many packets go out by one system call.
const batchPackets = 32

// A batch is datagrams to one address, for sendmmsg(2). Its memory is used again and again.
type batch struct {
	to   netip.AddrPort
	name [unix.SizeofSockaddrInet6]byte
	size uint32 // of name
	buf  []byte
	ends []int // of the datagrams in buf
	iovs [batchPackets]unix.Iovec
	msgs [batchPackets]mmsghdr
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
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

func (b *batch) reset()     { b.buf, b.ends = b.buf[:0], b.ends[:0] }
func (b *batch) full() bool { return len(b.ends) == batchPackets }

// add appends a packet and its ICRC.
func (b *batch) add(p *Packet, path Path) {
	from := len(b.buf)
	b.buf = p.Append(b.buf)
	crc := path.ICRC(b.buf[from:])
	b.buf = append(b.buf, byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24))
	b.ends = append(b.ends, len(b.buf))
}

// send gives all datagrams to the socket, and waits where that is full. What the network refuses counts as lost on it.
func (b *batch) send(e *Endpoint) error {
	if e.Through != nil {
		b.impaired(e)
		return nil
	}
	from := 0
	for i, end := range b.ends {
		b.iovs[i].Base = &b.buf[from]
		b.iovs[i].SetLen(end - from)
		b.msgs[i].hdr = unix.Msghdr{Name: &b.name[0], Namelen: b.size, Iov: &b.iovs[i], Iovlen: 1}
		from = end
	}
	for sent := 0; sent < len(b.ends); {
		var n uintptr
		var errno unix.Errno
		err := e.raw.Write(func(fd uintptr) bool {
			n, _, errno = unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&b.msgs[sent])), uintptr(len(b.ends)-sent), unix.MSG_DONTWAIT, 0, 0)
			return errno != unix.EAGAIN
		})
		runtime.KeepAlive(b)
		if err != nil {
			return err
		}
		if errno != 0 && errno != unix.EINTR {
			if errno == unix.EMSGSIZE {
				return errno
			}
			n = 1
		}
		sent += int(n)
	}
	return nil
}

// impaired gives the datagrams to whatever stands between here and the network.
func (b *batch) impaired(e *Endpoint) {
	from := 0
	for _, end := range b.ends {
		e.Through(b.buf[from:end], func(p []byte) { _, _ = e.conn.WriteToUDPAddrPort(p, b.to) })
		from = end
	}
}
