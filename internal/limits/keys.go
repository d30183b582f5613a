package limits

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
)

// SetAccess gives the programs the keys of all namespaces, by the namespaces' numbers, and the networks. A namespace that is not among them has none. A key
// or network that stays is good throughout.
func (l *Limits) SetAccess(keys map[uint32]api.Keys, networks map[api.Network]uint32) error {
	var failed error // a key that was removed must end all the same
	for network, number := range networks {
		if err := l.LnNetworks.Put(networkKey(network), number); err != nil {
			failed = errors.Join(failed, fmt.Errorf("network %s: %w", network, err))
		}
	}
	wanted := map[uint32]Keys{}
	for number, k := range keys {
		wanted[number%api.MaxNamespaces] = keysOf(&k)
	}
	for _, number := range networks {
		k := wanted[number%api.MaxNamespaces]
		k.Networked = 1
		wanted[number%api.MaxNamespaces] = k
	}
	return errors.Join(failed, l.setKeys(wanted), l.keepNetworks(networks))
}

// networkKey is a network as the programs have it (enum ln_network in bpf/layout.h).
func networkKey(n api.Network) uint32 {
	if n.Kind == api.NetworkVLAN {
		return uint32(RawLnNetworkLN_NETWORK_VLAN) | n.ID
	}
	return uint32(RawLnNetworkLN_NETWORK_VXLAN) | n.ID
}

// keepNetworks removes all others.
func (l *Limits) keepNetworks(networks map[api.Network]uint32) error {
	keep := map[uint32]bool{}
	for n := range networks {
		keep[networkKey(n)] = true
	}
	var key uint32
	var gone []uint32
	all := l.LnNetworks.Iterate()
	for all.Next(&key, new(uint32)) {
		if !keep[key] {
			gone = append(gone, key)
		}
	}
	err := all.Err()
	for _, key := range gone {
		err = errors.Join(err, l.LnNetworks.Delete(key))
	}
	return err
}

// setKeys writes the entries of all namespaces, by their indices.
func (l *Limits) setKeys(wanted map[uint32]Keys) error {
	for i := range uint32(api.MaxNamespaces) {
		var old Keys
		if err := l.LnNamespaceKeys.Lookup(i, &old); err != nil {
			return err
		}
		if old == wanted[i] {
			continue
		}
		for _, step := range steps(old, wanted[i]) {
			if err := l.LnNamespaceKeys.Put(i, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// steps lead from keys to others. The kernel copies an element while programs read it, so a key changes only while it is not valid.
func steps(from, to Keys) [3]Keys {
	all := [3]Keys{from, to, to}
	for i := range from.Key {
		if from.Key[i] != to.Key[i] {
			all[0].Key[i].Valid, all[1].Key[i].Valid = 0, 0
		}
	}
	return all
}

// keysOf are keys as the programs have them.
func keysOf(k *api.Keys) (p Keys) {
	if k.Required {
		p.Required = 1
	}
	for _, key := range k.Keys {
		at := &p.Key[key.Number%2]
		at.Word = [2]uint64{binary.LittleEndian.Uint64(key.Secret[:8]), binary.LittleEndian.Uint64(key.Secret[8:])}
		at.Valid = 1
	}
	return p
}
