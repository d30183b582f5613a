package rpcserver

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Faults are what a network does to packets, each with a probability, on the way there and on the way back.
type Faults struct {
	Seed      uint64
	Drop      float64
	Duplicate float64
	Reorder   float64 // held back until a later packet has gone by, or 2 ms have
	Corrupt   float64 // one bit of the header is flipped
	Delay     time.Duration
}

// A network passes packets on with its faults.
type network struct {
	faults  Faults
	mu      sync.Mutex
	rand    *rand.Rand
	held    []func()
	closed  bool
	pending sync.WaitGroup
}

func newNetwork(f Faults) *network {
	return &network{faults: f, rand: rand.New(rand.NewPCG(f.Seed, 4370))}
}

// holdTime bounds how long a packet is held back for reordering.
const holdTime = 2 * time.Millisecond

// pass hands p to deliver, now or later, once, twice or never.
func (n *network) pass(p []byte, deliver func([]byte)) {
	f := n.faults
	if f == (Faults{Seed: f.Seed}) {
		deliver(p)
		return
	}
	n.mu.Lock()
	drop, twice, hold := n.chance(f.Drop), n.chance(f.Duplicate), n.chance(f.Reorder)
	p = slices.Clone(p)
	if n.chance(f.Corrupt) && len(p) > 0 {
		p[n.rand.IntN(min(len(p), 64))] ^= 1 << n.rand.IntN(8)
	}
	var overtaking []func()
	if !hold {
		overtaking, n.held = n.held, nil
	}
	n.mu.Unlock()
	send := func() {
		deliver(p)
		if twice {
			deliver(slices.Clone(p))
		}
	}
	switch {
	case drop:
	case hold:
		n.hold(send)
	case f.Delay > 0:
		n.later(f.Delay, send)
	default:
		send()
	}
	for _, late := range overtaking {
		late()
	}
}

func (n *network) chance(p float64) bool { return p > 0 && n.rand.Float64() < p }

func (n *network) hold(send func()) {
	var released atomic.Bool // not sync.Once: send may release another packet, and that one this
	release := func() {
		if !released.Swap(true) {
			send()
		}
	}
	n.mu.Lock()
	n.held = append(n.held, release)
	n.mu.Unlock()
	n.later(holdTime, release)
}

func (n *network) later(d time.Duration, f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.pending.Add(1)
	time.AfterFunc(d, func() {
		defer n.pending.Done()
		f()
	})
}

func (n *network) close() {
	n.mu.Lock()
	n.closed, n.held = true, nil
	n.mu.Unlock()
	n.pending.Wait()
}
