package lambdanic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	wire "github.com/lambdanic/lambdanic/api/ikernel"
)

// Notes are what an application says to its ikernel, which it writes in place. One goroutine writes them.
type Notes struct {
	k     *Ikernel
	mu    sync.Mutex // held while they are written, so that their memory stays
	own   []byte     // the memory: what the application writes
	their []byte     // and what the kernel does
	read  *atomic.Uint64
	end   *atomic.Uint64 // of what is written
	notes []byte         // twice, so that each is in one piece
	mask  uint64
	at    uint64 // what end becomes when they are delivered
}

// ErrNotesFull says that there is no room for a note until those before are delivered.
var ErrNotesFull = errors.New("there is no room for the note: deliver those before")

// OpenNotes lets the application write notes to an ikernel that takes some. It may be called once. The notes end with the ikernel.
func (k *Ikernel) OpenNotes() (*Notes, error) {
	reply, err := k.all.exchange(wire.OperationNotes, k.number, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("open notes: %w", err)
	}
	defer closeDescriptors(reply.descriptors)
	if len(reply.descriptors) != 1 || len(reply.body) != 4 {
		return nil, errors.New("open notes: the daemon gives no memory for them")
	}
	n := &Notes{k: k}
	if err := n.open(reply.descriptors[0], int(binary.NativeEndian.Uint32(reply.body))); err != nil {
		return nil, errors.Join(fmt.Errorf("map the memory for notes: %w", err), n.Close())
	}
	k.keep(n)
	return n, nil
}

func (n *Notes) open(fd, size int) (err error) {
	page := os.Getpagesize()
	if n.their, err = unix.Mmap(fd, 0, page, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return err
	}
	if n.own, err = unix.Mmap(fd, int64(page), page+2*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return err
	}
	n.read, n.end = (*atomic.Uint64)(unsafe.Pointer(&n.their[0])), (*atomic.Uint64)(unsafe.Pointer(&n.own[0]))
	n.notes, n.mask, n.at = n.own[page:], uint64(size)-1, n.end.Load()
	return nil
}

// Close ends the notes. None may be in use.
func (n *Notes) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for _, memory := range []*[]byte{&n.own, &n.their} {
		if *memory != nil {
			errs = append(errs, unix.Munmap(*memory))
		}
		*memory = nil
	}
	return errors.Join(errs...)
}

// Reserve returns where the next note is to be written, of some bytes. It is valid until Deliver or Close. With ErrNotesFull there is no room.
func (n *Notes) Reserve(bytes int) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.own == nil {
		return nil, fmt.Errorf("write a note: %w", os.ErrClosed)
	}
	if most := int(n.mask) + 1 - unix.BPF_RINGBUF_HDR_SZ; bytes < 0 || bytes > most {
		return nil, fmt.Errorf("a note of %d bytes: one has up to %d", bytes, most)
	}
	next := n.at + (unix.BPF_RINGBUF_HDR_SZ+uint64(bytes)+7)&^7
	if next-n.read.Load() > n.mask+1 {
		return nil, ErrNotesFull
	}
	from := n.at & n.mask
	binary.NativeEndian.PutUint64(n.notes[from:], uint64(bytes))
	from += unix.BPF_RINGBUF_HDR_SZ
	n.at = next
	return n.notes[from : from+uint64(bytes) : from+uint64(bytes)], nil
}

// Deliver has the ikernel get the notes that are written, in order, and returns how many. When it returns, the ikernel has got them.
func (n *Notes) Deliver() (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.own == nil {
		return 0, fmt.Errorf("deliver notes: %w", os.ErrClosed)
	}
	n.end.Store(n.at)
	reply, err := n.k.all.exchange(wire.OperationDeliver, n.k.number, nil, nil)
	if err != nil {
		return 0, err
	}
	return int(binary.NativeEndian.Uint32(reply.body)), nil
}
