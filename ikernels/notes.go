package ikernels

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// OpenNotes returns where the application writes notes for the ikernel (notes.h). It ends with the ikernel.
func (k *Ikernel) OpenNotes() (*ebpf.Map, error) {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	if err := k.serves(); err != nil {
		return nil, err
	}
	if k.coll.Maps["ik_notes"] == nil {
		return nil, errors.New("this ikernel takes no notes: ikernels/README.md says which do")
	}
	if k.notes {
		return nil, fmt.Errorf("the ikernel's notes are %w", ErrOpen)
	}
	k.notes = true
	return k.coll.Maps["ik_notes"], nil
}

// Deliver has the ikernel get the notes that were written, and returns how many.
func (k *Ikernel) Deliver() (uint32, error) {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	if err := k.serves(); err != nil {
		return 0, err
	}
	if !k.notes {
		return 0, errors.New("the ikernel's notes are not open")
	}
	n, err := k.coll.Programs["ik_deliver"].Run(nil)
	if err != nil {
		return 0, fmt.Errorf("deliver notes: %w", err)
	}
	if int32(n) < 0 {
		return 0, fmt.Errorf("deliver notes: %w: they are not written as the kernel wants it (BPF_MAP_TYPE_USER_RINGBUF)", unix.Errno(-int32(n)))
	}
	if k.generator != nil {
		k.generator.poke()
	}
	return n, k.notice()
}
