package cluster

import (
	"github.com/lambdanic/lambdanic/internal/placement"
	"github.com/lambdanic/lambdanic/sim/event"
)

// How long a message takes, one way. Of its measurements (Figure 3, which is drawn only) the paper's text has that a NIC and its host take up to
// 83.3 % less than two hosts through the switch of their rack with the kernel bypassed, and two NICs 86.2 % less (section 2.4).
const (
	// HostToHost is through the switch of a rack. It is assumed: the paper's text has ratios alone.
	HostToHost = 10 * event.Microsecond
	NICToHost  = HostToHost * 167 / 1000 // of the same server, over PCIe
	NICToNIC   = HostToHost * 138 / 1000 // through the switch of a rack, also of the same server (section 3.1)
	// HostEnd is what a host adds to a way through a switch that a NIC does not.
	HostEnd = (HostToHost - NICToNIC) / 2
	// Tier is for two more switches on the way: to another rack, and again to another pod. It is assumed.
	Tier = event.Microsecond
)

// delay is the time of a message between two nodes; Nowhere is a client's NIC, in the same rack.
func (cl *Cluster) delay(a, b placement.NodeID) event.Time {
	if a == b {
		return 0
	}
	end := func(id placement.NodeID) event.Time {
		if id != placement.Nowhere && cl.nodes[id].kind == placement.Host {
			return HostEnd
		}
		return 0
	}
	through := NICToNIC + end(a) + end(b)
	if a == placement.Nowhere || b == placement.Nowhere {
		return through
	}
	switch hops := cl.topo.Hops(a, b); {
	case hops > sameRack:
		return through + event.Time(hops-sameRack)/2*Tier
	case hops == sameServer && cl.nodes[a].kind != cl.nodes[b].kind:
		return NICToHost
	}
	return through
}

// Links of the tree.
const (
	sameServer = 2
	sameRack   = 4
)
