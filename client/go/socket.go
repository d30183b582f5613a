package lambdanic

import (
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls below are made directly because the client decides by itself when to wait, and because
// golang.org/x/net's batches allocate for each message. Go's poller or a blocking socket do the waiting.

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

// offload says whether a socket can cut batches into packets (UDP_SEGMENT). It is tried, and given up where it fails:
// kernels before 6.11 refuse it on interfaces that do not compute checksums.
type offload struct {
	off  atomic.Bool
	ipv4 bool
}

// control is room for one control message with a 16- or 32-bit value.
type control struct {
	hdr  unix.Cmsghdr
	data [8]byte
}

// sendBatch sends b on a connected socket by as few system calls as the kernel permits. It returns the packets that were
// taken; the error, if any, is of the next one. EAGAIN means that the socket's buffer is full.
func sendBatch(fd int, b *batch, from int, o *offload) (sent int, err error) {
	if b.count-from > 1 && !o.off.Load() {
		err := sendSegmented(fd, b.buf[from*b.size:], b.size, b.bulk, o.ipv4)
		switch {
		case err == nil:
			return b.count, nil
		case err == unix.EIO || err == unix.EINVAL || err == unix.EOPNOTSUPP || err == unix.ENOPROTOOPT:
			o.off.Store(true)
		default:
			return from, err
		}
	}
	for i := from; i < b.count; i++ {
		if err := sendOne(fd, b.buf[i*b.size:min((i+1)*b.size, len(b.buf))]); err != nil {
			return i, err
		}
	}
	return b.count, nil
}

// refused reports an error that a former packet caused: an ICMP message came back, which the kernel hands to the next
// system call, whatever it is. The call goes on, as the lambda's server may be about to come back.
func refused(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH)
}

func sendOne(fd int, p []byte) error {
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		if e == 0 {
			return nil
		}
		if e != unix.EINTR {
			return e
		}
	}
}

func sendSegmented(fd int, p []byte, size int, bulk, ipv4 bool) error {
	iov := unix.Iovec{Base: &p[0]}
	iov.SetLen(len(p))
	var c [2]control
	c[0].hdr.Level, c[0].hdr.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	c[0].hdr.SetLen(unix.CmsgLen(2))
	*(*uint16)(unsafe.Pointer(&c[0].data)) = uint16(size)
	msg := unix.Msghdr{Iov: &iov, Iovlen: 1, Control: (*byte)(unsafe.Pointer(&c))}
	msg.SetControllen(unix.CmsgSpace(2))
	if bulk {
		c[1].hdr.Level, c[1].hdr.Type = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		if ipv4 {
			c[1].hdr.Level, c[1].hdr.Type = unix.IPPROTO_IP, unix.IP_TOS
		}
		c[1].hdr.SetLen(unix.CmsgLen(4))
		*(*int32)(unsafe.Pointer(&c[1].data)) = classBulk
		msg.SetControllen(unix.CmsgSpace(2) + unix.CmsgSpace(4))
	}
	for {
		_, _, e := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_DONTWAIT)
		runtime.KeepAlive(p)
		if e == 0 {
			return nil
		}
		if e != unix.EINTR {
			return e
		}
	}
}

// A receiver takes datagrams from a socket, several at a time, and splits those that the kernel has joined (UDP_GRO).
type receiver struct {
	msgs  []mmsghdr
	iovs  []unix.Iovec
	ctrls []control
	bufs  [][]byte
}

const receiveSize = 64 << 10

func newReceiver(datagrams int) *receiver {
	r := &receiver{
		msgs: make([]mmsghdr, datagrams), iovs: make([]unix.Iovec, datagrams),
		ctrls: make([]control, datagrams), bufs: make([][]byte, datagrams),
	}
	for i := range r.msgs {
		r.bufs[i] = make([]byte, receiveSize)
		r.iovs[i].Base = &r.bufs[i][0]
		r.iovs[i].SetLen(receiveSize)
		r.msgs[i].hdr.Iov, r.msgs[i].hdr.Iovlen = &r.iovs[i], 1
		r.msgs[i].hdr.Control = (*byte)(unsafe.Pointer(&r.ctrls[i]))
	}
	return r
}

// receive takes flags of recvmmsg(2): with MSG_DONTWAIT, the error is EAGAIN where no datagram has arrived.
func (r *receiver) receive(fd, flags int) (datagrams int, err error) {
	for i := range r.msgs {
		r.msgs[i].hdr.SetControllen(int(unsafe.Sizeof(control{})))
	}
	for {
		n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.msgs[0])), uintptr(len(r.msgs)), uintptr(flags), 0, 0)
		runtime.KeepAlive(r)
		if e == 0 {
			return int(n), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// receiveOne takes one datagram, with flags as receive does.
func receiveOne(fd int, p []byte, flags int) (n int, err error) {
	call := unix.Syscall6
	if flags&unix.MSG_DONTWAIT != 0 {
		call = unix.RawSyscall6 // it does not block, so the scheduler need not know
	}
	for {
		n, _, e := call(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), uintptr(flags), 0, 0)
		if e == 0 {
			return int(n), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// each calls f with every packet of datagram i. The bytes are valid until the next receive.
func (r *receiver) each(i int, f func(packet []byte)) {
	m := &r.msgs[i]
	p := r.bufs[i][:m.len]
	size := len(p)
	if c := &r.ctrls[i]; m.hdr.Controllen >= uint64(unix.CmsgLen(4)) && c.hdr.Level == unix.IPPROTO_UDP && c.hdr.Type == unix.UDP_GRO {
		if s := int(*(*int32)(unsafe.Pointer(&c.data))); s > 0 {
			size = s
		}
	}
	for len(p) > size {
		f(p[:size:size])
		p = p[size:]
	}
	f(p)
}

// prepare sets a socket up. A failure only costs speed.
func prepare(fd int, join bool) {
	const buffer = 4 << 20
	for _, o := range [...][2]int{{unix.SO_RCVBUF, unix.SO_RCVBUFFORCE}, {unix.SO_SNDBUF, unix.SO_SNDBUFFORCE}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[1], buffer) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[0], buffer)
		}
	}
	if join {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	}
}
