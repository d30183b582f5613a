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
		if err := l.LnNamespaceKeys.Put(i, wanted[i]); err != nil {
			return err
		}
	}
	return nil
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
