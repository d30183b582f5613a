package lambdanic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	wire "github.com/lambdanic/lambdanic/api/ikernel"
)

// Rings says what rings an ikernel gets.
type Rings struct {
	Count int // such as one for each CPU
	Size  int // bytes of each: a power of two, of one page at least. What is not yet read takes its place
	// Polled has the ikernel wake nobody, which costs it time: the application uses Poll alone.
	Polled bool
}

// OpenRings has the ikernel send messages to the application by rings. It may be called once. The rings end with the ikernel.
func (k *Ikernel) OpenRings(r Rings) ([]*Ring, error) {
	if r.Count < 0 || r.Size < 0 || uint64(r.Count|r.Size) > 1<<31 {
		return nil, fmt.Errorf("%d rings of %d bytes cannot be", r.Count, r.Size)
	}
	var flags uint32
	if r.Polled {
		flags = wire.RingsPolled
	}
	body := binary.NativeEndian.AppendUint32(nil, uint32(r.Count))
	body = binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(body, uint32(r.Size)), flags)
	reply, err := k.all.exchange(wire.OperationRings, k.number, body, nil)
	if err != nil {
		return nil, fmt.Errorf("open rings: %w", err)
	}
	var rings []*Ring
	for i, fd := range reply.descriptors {
		ring, err := openRing(fd, r)
		if err != nil {
			closeDescriptors(reply.descriptors[i+1:])
			for _, ring := range rings {
				err = errors.Join(err, ring.Close())
			}
			return nil, fmt.Errorf("open ring %d: %w: destroy the ikernel", i, err)
		}
		rings = append(rings, ring)
	}
	for _, ring := range rings {
		k.keep(ring)
	}
	if r.Polled {
		return rings, nil // nobody waits for it
	}
	w, err := k.watch()
	if err != nil {
		return nil, fmt.Errorf("%w: destroy the ikernel", err)
	}
	w.tell(rings)
	return rings, nil
}

// RingCounts are a ring's messages.
type RingCounts struct {
	Posted  uint64
	Refused uint64 // the ring was full, or the message longer than it
}

// RingCounts counts the messages of each ring.
func (k *Ikernel) RingCounts() ([]RingCounts, error) {
	reply, err := k.all.exchange(wire.OperationRingCounts, k.number, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("count messages: %w", err)
	}
	all := make([]RingCounts, len(reply.body)/wire.RingCountsLen)
	_, err = binary.Decode(reply.body, binary.NativeEndian, all)
	return all, err
}

// A Message is what an ikernel sends of a datagram.
type Message struct {
	Data     []byte // in the ring: it is valid until the next Read, Poll, Release or Close
	From, To netip.AddrPort
	Time     time.Duration // when it was posted, on CLOCK_MONOTONIC
}

// A Ring has messages from an ikernel, which the application reads in place. One goroutine reads it; others may call SetReadDeadline and Close.
type Ring struct {
	mu       sync.Mutex // held while it is read, so that its memory stays
	file     *os.File
	raw      syscall.RawConn
	polled   bool
	own      []byte // the memory: what the application writes
	theirs   []byte // and what the kernel does
	read     *atomic.Uint64
	written  *atomic.Uint64
	messages []byte // twice, so that each is in one piece
	mask     uint64
	at       uint64 // what read becomes when the message in use is released

	deadline sync.Mutex // held while that is set
	ended    error      // why nothing more comes; nil: the ikernel serves
}

// openRing maps a ring by mmap alone, which needs no privilege.
func openRing(fd int, o Rings) (_ *Ring, err error) {
	r := &Ring{polled: o.Polled, mask: uint64(o.Size) - 1}
	page := os.Getpagesize()
	err = unix.SetNonblock(fd, true) // has Go's runtime wait for it, as for sockets
	r.file = os.NewFile(uintptr(fd), "ring")
	if err == nil {
		err = r.file.SetReadDeadline(time.Time{})
	}
	if err == nil {
		r.raw, err = r.file.SyscallConn()
	}
	if err == nil {
		r.own, err = unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		r.theirs, err = unix.Mmap(fd, int64(page), page+2*o.Size, unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.read, r.written = (*atomic.Uint64)(unsafe.Pointer(&r.own[0])), (*atomic.Uint64)(unsafe.Pointer(&r.theirs[0]))
	r.messages = r.theirs[page:]
	return r, nil
}

// Close ends the ring, and a Read of it. No message of it may be in use. What the ikernel posts to it from then on is lost, or refused when it is full.
func (r *Ring) Close() error {
	err := r.file.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, memory := range []*[]byte{&r.own, &r.theirs} {
		if *memory != nil {
			err = errors.Join(err, unix.Munmap(*memory))
		}
		*memory = nil
	}
	return err
}

// SetReadDeadline ends Read at a time with os.ErrDeadlineExceeded, also one that waits already. The zero time is never.
func (r *Ring) SetReadDeadline(t time.Time) error {
	r.deadline.Lock()
	defer r.deadline.Unlock()
	if r.ended != nil {
		return nil // Read waits no more
	}
	return r.file.SetReadDeadline(t)
}

// end has nobody wait for the ring any more.
func (r *Ring) end(why error) {
	r.deadline.Lock()
	defer r.deadline.Unlock()
	r.ended = why
	_ = r.file.SetReadDeadline(time.Unix(1, 0)) // fails where the ring is closed
}

// hasEnded says why nothing more comes; nil: the ikernel serves.
func (r *Ring) hasEnded() error {
	r.deadline.Lock()
	defer r.deadline.Unlock()
	return r.ended
}

// Read waits for the next message. It releases the one before. When the ikernel has faulted and no message is left, it fails with the Fault; when the ikernel or
// the daemon has ended, with os.ErrClosed.
func (r *Ring) Read() (m Message, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.polled {
		return m, errors.New("the ring is polled: use Poll, or open it without Polled")
	}
	if r.own == nil {
		return m, fmt.Errorf("read a ring: %w", os.ErrClosed)
	}
	r.release()
	err = r.raw.Read(func(uintptr) (ok bool) {
		m, ok = r.next()
		return ok
	})
	if err == nil {
		return m, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		why := r.hasEnded()
		if why == nil {
			return m, err
		}
		if m, ok := r.next(); ok {
			return m, nil // of before the end
		}
		return m, fmt.Errorf("read a ring: %w", why)
	}
	return m, fmt.Errorf("read a ring: %w", os.ErrClosed)
}

// Poll returns the next message if there is one already. It releases the one before.
func (r *Ring) Poll() (m Message, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil {
		return m, false
	}
	r.release()
	return r.next()
}

// Release gives the last message's place to the ikernel. Read and Poll do so, too.
func (r *Ring) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own != nil {
		r.release()
	}
}

// release is a store that comes before all later loads: either next sees a message, or the kernel sees that its reader has none and wakes it.
func (r *Ring) release() { r.read.Store(r.at) }

func (r *Ring) next() (m Message, ok bool) {
	for r.at != r.written.Load() {
		from := r.at & r.mask
		length := (*atomic.Uint32)(unsafe.Pointer(&r.messages[from])).Load()
		if length&unix.BPF_RINGBUF_BUSY_BIT != 0 {
			return m, false
		}
		from += unix.BPF_RINGBUF_HDR_SZ
		n := uint64(length &^ unix.BPF_RINGBUF_DISCARD_BIT)
		r.at += (unix.BPF_RINGBUF_HDR_SZ + n + 7) &^ 7
		if length&unix.BPF_RINGBUF_DISCARD_BIT == 0 {
			return parseMessage(r.messages[from : from+n : from+n]), true
		}
		r.release()
	}
	return m, false
}

// parseMessage reads what stands before a message (wire.RingHeadLen).
func parseMessage(b []byte) Message {
	address := func(at, port int) netip.AddrPort {
		ip := netip.AddrFrom4([4]byte(b[at:]))
		if b[44] != 0 {
			ip = netip.AddrFrom16([16]byte(b[at:]))
		}
		return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[port:]))
	}
	return Message{
		Data: b[wire.RingHeadLen:], From: address(8, 40), To: address(24, 42),
		Time: time.Duration(binary.NativeEndian.Uint64(b)),
	}
}
