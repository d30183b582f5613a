package ikernels

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/lambdanic/lambdanic/internal/counters"
	"github.com/lambdanic/lambdanic/internal/demux"
)

// An Owner is the process for which an ikernel is.
type Owner struct {
	PID     int    // that connected to the daemon
	Command string // its name, as far as the kernel knows it
}

// A Description says what an ikernel does, and for whom.
type Description struct {
	Ikernel  string // its name
	Number   uint32 // which no other one ever has
	Owner    Owner
	Sockets  []Socket
	Verdicts Verdicts
	Fault    *Fault // nil: it has none

	Namespace string         // "": it is of none
	Metered   *demux.Metered // what was dropped and charged for the namespace; nil: it is of none
}

// A Socket is one that is attached, or several that share its port.
type Socket struct {
	Protocol  string         // "udp" or "tcp"
	Own, Peer netip.AddrPort // Peer is invalid where it is not connected
}

// Verdicts count messages by what an ikernel did with them.
type Verdicts struct{ Passed, Dropped, Replied uint64 }

// SetOwner says for whom the ikernel is.
func (k *Ikernel) SetOwner(o Owner) {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	k.owner = o
}

// List describes all ikernels, those of one process together.
func (h *Host) List() ([]Description, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.sweep(); err != nil {
		return nil, err
	}
	h.sweepStreams()
	all := slices.SortedFunc(maps.Keys(h.all), func(a, b *Ikernel) int {
		return cmp.Or(cmp.Compare(a.owner.PID, b.owner.PID), cmp.Compare(a.number, b.number))
	})
	list := make([]Description, 0, len(all))
	for _, k := range all {
		if err := k.notice(); err != nil && k.fault == nil {
			return nil, err
		}
		verdicts, err := k.verdicts()
		if err != nil {
			return nil, err
		}
		namespace, counted, err := k.ofNamespace()
		if err != nil {
			return nil, err
		}
		list = append(list, Description{k.name, k.number, k.owner, h.socketsOf(k), verdicts, k.fault, namespace, counted})
	}
	return list, nil
}

func (h *Host) socketsOf(k *Ikernel) (all []Socket) {
	for _, p := range h.places {
		if p != nil && p.ikernel == k {
			all = append(all, Socket{"udp", p.own, p.peer})
		}
	}
	for _, cookie := range slices.Sorted(maps.Keys(h.streams)) {
		if s := h.streams[cookie]; s.ikernel == k {
			all = append(all, Socket{"tcp", s.own, s.peer})
		}
	}
	return all
}

func (k *Ikernel) verdicts() (Verdicts, error) {
	n, err := counters.Sum(k.coll.Maps["ik_counters"])
	if err != nil {
		return Verdicts{}, err
	}
	return Verdicts{n[echoIkVerdictIK_PASS], n[echoIkVerdictIK_DROP], n[echoIkVerdictIK_REPLY]}, nil
}
