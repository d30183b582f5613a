package xsk

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// frameLen is the bytes of a frame in the memory that is shared with the kernel.
const frameLen = 2048

// A socket is of AF_XDP, for one queue of an interface, in copy mode.
type socket struct {
	fd         int
	frames     []byte
	rx, tx     ring[unix.XDPDesc]
	fill, done ring[uint64]
	batch      []unix.XDPDesc
	free       []uint64
}

// open makes a socket in this thread's network namespace.
func open(ifindex, queue int) (s *socket, err error) {
	s = &socket{}
	if s.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("make an AF_XDP socket: %w", err)
	}
	if err := errors.Join(s.share(), s.mapRings()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	for i := range ringLen {
		s.free = append(s.free, uint64(i*frameLen))
	}
	s.fill.give(s.free)
	if err := s.bind(ifindex, queue); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// bind waits for the queue's last socket, of which the kernel lets go some time after it was closed (xp_put_pool() of net/xdp/xsk_buff_pool.c).
func (s *socket) bind(ifindex, queue int) error {
	to := unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(ifindex), QueueID: uint32(queue)}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		err := unix.Bind(s.fd, &to)
		if err == nil {
			return nil
		}
		if err != unix.EBUSY || time.Now().After(deadline) {
			return fmt.Errorf("bind an AF_XDP socket to queue %d: %w", queue, err)
		}
	}
}

// share gives the kernel the memory for frames.
func (s *socket) share() (err error) {
	s.frames, err = unix.Mmap(-1, 0, ringLen*frameLen, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("allocate frames: %w", err)
	}
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&s.frames[0]))), Len: uint64(len(s.frames)), Size: frameLen}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(s.fd), unix.SOL_XDP, unix.XDP_UMEM_REG, uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	if errno != 0 {
		return fmt.Errorf("share frames with the kernel: %w", errno)
	}
	return nil
}

func (s *socket) mapRings() error {
	for _, option := range []int{unix.XDP_RX_RING, unix.XDP_TX_RING, unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_XDP, option, ringLen); err != nil {
			return fmt.Errorf("make ring %d of an AF_XDP socket: %w", option, err)
		}
	}
	var at unix.XDPMmapOffsets
	length := unsafe.Sizeof(at)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return fmt.Errorf("ask where an AF_XDP socket's rings are: %w", errno)
	}
	var errs [4]error
	s.rx, errs[0] = mapRing[unix.XDPDesc](s.fd, unix.XDP_PGOFF_RX_RING, at.Rx)
	s.tx, errs[1] = mapRing[unix.XDPDesc](s.fd, unix.XDP_PGOFF_TX_RING, at.Tx)
	s.fill, errs[2] = mapRing[uint64](s.fd, unix.XDP_UMEM_PGOFF_FILL_RING, at.Fr)
	s.done, errs[3] = mapRing[uint64](s.fd, unix.XDP_UMEM_PGOFF_COMPLETION_RING, at.Cr)
	return errors.Join(errs[:]...)
}

// answer turns around what has come, and says whether something is still to be sent.
func (s *socket) answer() (more bool, err error) {
	s.batch = s.rx.take(s.batch[:0])
	for _, d := range s.batch {
		turn(s.frames[d.Addr:][:d.Len])
	}
	s.tx.give(s.batch)
	if s.tx.waiting() {
		// A call sends up to 32 frames (TX_BATCH_SIZE of net/xdp/xsk.c).
		_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 && errno != unix.EAGAIN && errno != unix.EBUSY && errno != unix.ENOBUFS {
			return false, fmt.Errorf("send from an AF_XDP socket: %w", errno)
		}
	}
	s.free = s.done.take(s.free[:0])
	s.fill.give(s.free)
	return s.tx.waiting(), nil
}

func (s *socket) close() error {
	errs := []error{s.rx.close(), s.tx.close(), s.fill.close(), s.done.close(), unix.Close(s.fd)}
	if s.frames != nil {
		errs = append(errs, unix.Munmap(s.frames))
	}
	return errors.Join(errs...)
}
