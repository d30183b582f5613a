package limits

import (
	"encoding/binary"

	"github.com/lambdanic/lambdanic/api"
)

// SetKeys gives the programs the keys of all namespaces, by the namespaces' numbers. One that is not among them has none. A key that stays is good
// throughout.
func (l *Limits) SetKeys(keys map[uint32]api.Keys) error {
	wanted := map[uint32]Keys{}
	for number, k := range keys {
		wanted[number%api.MaxNamespaces] = keysOf(&k)
	}
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
