package nic

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/ethtool"
	"github.com/lambdanic/lambdanic/internal/limits"
)

// Limit has the NIC program keep all namespaces to their shares and quotas, and gives it their keys (backend.Limiting). It does not wait for deploys.
func (n *NIC) Limit(_ context.Context, l backend.Limits) error {
	n.running.RLock()
	defer n.running.RUnlock()
	if n.closed {
		return nil
	}
	if err := n.prog.Limits.Set(l.Budget, l.Quotas); err != nil {
		return fmt.Errorf("limit what namespaces may do on %s: %w", n.rec.Interface, err)
	}
	if err := n.prog.Limits.SetAccess(l.Keys, l.Networks); err != nil {
		return fmt.Errorf("give %s the keys and networks of namespaces: %w", n.rec.Interface, err)
	}
	n.warnOfStripping(l.Networks)
	return nil
}

// warnOfStripping says where the interface hides VLANs: then packets in them are taken for others. That setting does not outlast a reboot.
func (n *NIC) warnOfStripping(networks map[api.Network]uint32) {
	isVLAN := func(network api.Network) bool { return network.Kind == api.NetworkVLAN }
	if n.rec.Namespace != "" || !slices.ContainsFunc(slices.Collect(maps.Keys(networks)), isVLAN) {
		return
	}
	if strips, err := ethtool.StripsVLAN(n.rec.Interface); err == nil && strips {
		n.cfg.Log.Warn("the interface takes VLAN tags out of packets before the NIC program sees them: namespaces' VLANs are not told apart",
			"interface", n.rec.Interface, "remedy", "ethtool -K "+n.rec.Interface+" rxvlan off")
	}
}

// Limits are what namespaces may do, on all NICs with the same limits (Config.Limits).
func (n *NIC) Limits() *limits.Limits { return n.prog.Limits }

// putOnCPUs writes a value for each CPU.
func putOnCPUs[T any](m *ebpf.Map, at uint32, value T) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return m.Put(at, slices.Repeat([]T{value}, cpus))
}
