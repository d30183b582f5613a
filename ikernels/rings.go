package ikernels

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

// Rings says what rings an application asks for (rings.h).
type Rings struct {
	Count  uint32
	Size   uint32 // of each, in bytes
	Polled bool   // the application looks for messages by itself, and is not woken
}

// ErrOpen says that what an application can open once is open already.
var ErrOpen = errors.New("open already")

func (r Rings) check() error {
	page, most := uint32(os.Getpagesize()), uint32(echoIkLimitIK_MAX_RING)
	switch {
	case r.Count == 0 || r.Count > uint32(echoIkLimitIK_RINGS):
		return fmt.Errorf("%d rings: ask for 1 to %d", r.Count, echoIkLimitIK_RINGS)
	case r.Size < page || r.Size > most || r.Size&(r.Size-1) != 0:
		return fmt.Errorf("rings of %d bytes: ask for a power of two from %d to %d", r.Size, page, most)
	case uint64(r.Count)*uint64(r.Size) > uint64(echoIkLimitIK_MAX_RINGS_MEMORY):
		return fmt.Errorf("%d rings of %d bytes: ask for %d bytes together at most", r.Count, r.Size, echoIkLimitIK_MAX_RINGS_MEMORY)
	}
	return nil
}

// OpenRings makes rings, by which the ikernel sends messages to its application. The ikernel closes them when it ends.
func (k *Ikernel) OpenRings(r Rings) ([]*ebpf.Map, error) {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	if err := k.serves(); err != nil {
		return nil, err
	}
	if err := k.mayHaveRings(); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	rings, err := k.makeRings(r)
	if err == nil {
		err = k.announce(r)
	}
	if err != nil {
		return nil, errors.Join(err, k.dropRings(rings))
	}
	k.rings = rings
	return slices.Clone(rings), nil
}

func (k *Ikernel) mayHaveRings() error {
	if k.coll.Maps["ik_rings"] == nil {
		return errors.New("this ikernel sends its application nothing: ikernels/README.md says which do")
	}
	if k.rings != nil {
		return fmt.Errorf("the ikernel's rings are %w", ErrOpen)
	}
	return nil
}

// makeRings makes rings where the ikernel finds them. If that fails, it returns those that it made.
func (k *Ikernel) makeRings(r Rings) (rings []*ebpf.Map, err error) {
	for i := range r.Count {
		ring, err := ebpf.NewMap(&ebpf.MapSpec{Name: "ik_ring", Type: ebpf.RingBuf, MaxEntries: r.Size})
		if err != nil {
			return rings, kernel.Fails(fmt.Sprintf("has no memory for %d rings of %d bytes", r.Count, r.Size), err)
		}
		rings = append(rings, ring)
		if err := k.coll.Maps["ik_rings"].Update(i, ring, ebpf.UpdateAny); err != nil {
			return rings, kernel.Fails("does not let the ikernel have rings", err)
		}
	}
	return rings, nil
}

// announce has the ikernel post to its rings.
func (k *Ikernel) announce(r Rings) error {
	var flags uint32
	if r.Polled {
		flags = unix.BPF_RB_NO_WAKEUP
	}
	if err := k.coll.Variables["ik_ring_flags"].Set(flags); err != nil {
		return fmt.Errorf("say how the application gets messages: %w", err)
	}
	if err := k.coll.Variables["ik_rings_open"].Set(r.Count); err != nil {
		return fmt.Errorf("say how many rings there are: %w", err)
	}
	return nil
}

// dropRings takes rings from the ikernel.
func (k *Ikernel) dropRings(rings []*ebpf.Map) error {
	var errs []error
	for i, ring := range rings {
		if err := k.coll.Maps["ik_rings"].Delete(uint32(i)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("take ring %d: %w", i, err))
		}
		errs = append(errs, ring.Close())
	}
	return errors.Join(errs...)
}

// RingCounts are the messages of a ring: those that the ikernel posted, and those that the ring refused.
type RingCounts = thresholdIkRingCounts

// RingCounts counts the messages of each ring.
func (k *Ikernel) RingCounts() ([]RingCounts, error) {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	if !k.host.all[k] {
		return nil, errDestroyed
	}
	all := make([]RingCounts, len(k.rings))
	for i := range all {
		var cores []RingCounts
		if err := k.coll.Maps["ik_ring_counters"].Lookup(uint32(i), &cores); err != nil {
			return nil, fmt.Errorf("count the messages of ring %d: %w", i, err)
		}
		for _, c := range cores {
			all[i].Posted += c.Posted
			all[i].Refused += c.Refused
		}
	}
	return all, nil
}
