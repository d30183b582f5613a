package xsk

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ringLen is the entries of each ring. A socket has as many frames, so no ring overflows.
const ringLen = 2048

// A ring is shared with the kernel, and has one producer and one consumer (Documentation/networking/af_xdp.rst).
type ring[T any] struct {
	memory             []byte
	producer, consumer *atomic.Uint32
	entries            []T
}

func mapRing[T any](fd int, offset int64, o unix.XDPRingOffset) (r ring[T], err error) {
	var entry T
	length := int(o.Desc) + ringLen*int(unsafe.Sizeof(entry))
	if r.memory, err = unix.Mmap(fd, offset, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return r, fmt.Errorf("map a ring of an AF_XDP socket: %w", err)
	}
	r.producer = (*atomic.Uint32)(unsafe.Pointer(&r.memory[o.Producer]))
	r.consumer = (*atomic.Uint32)(unsafe.Pointer(&r.memory[o.Consumer]))
	r.entries = unsafe.Slice((*T)(unsafe.Pointer(&r.memory[o.Desc])), ringLen)
	return r, nil
}

// take moves to a list what the kernel has put into the ring.
func (r *ring[T]) take(into []T) []T {
	from, to := r.consumer.Load(), r.producer.Load()
	if from == to {
		return into
	}
	for i := from; i != to; i++ {
		into = append(into, r.entries[i%ringLen])
	}
	r.consumer.Store(to)
	return into
}

// give puts a list into the ring for the kernel.
func (r *ring[T]) give(list []T) {
	if len(list) == 0 {
		return
	}
	at := r.producer.Load()
	for i, e := range list {
		r.entries[(at+uint32(i))%ringLen] = e
	}
	r.producer.Store(at + uint32(len(list)))
}

// waiting says whether the kernel has yet to take something.
func (r *ring[T]) waiting() bool { return r.producer.Load() != r.consumer.Load() }

func (r *ring[T]) close() error {
	if r.memory == nil {
		return nil
	}
	return unix.Munmap(r.memory)
}
