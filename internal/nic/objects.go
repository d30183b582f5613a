package nic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/mapped"
	"github.com/lambdanic/lambdanic/internal/nic/module"
)

// The host reads and writes a lambda's objects by their names in C, which the kernel has in the types of their sections.

// Objects lists the objects of a lambda, by name.
func (n *NIC) Objects(_ context.Context, workload uint32) ([]api.Object, error) {
	var list []api.Object
	err := n.inObjects(workload, func(r *revision) error {
		return r.objects(func(_ *ebpf.Map, v btf.VarSecinfo) error {
			list = append(list, api.Object{Name: v.Type.TypeName(), Size: v.Size})
			return nil
		})
	})
	slices.SortFunc(list, func(a, b api.Object) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// ReadObject returns an object as the machine has it in memory.
func (n *NIC) ReadObject(_ context.Context, workload uint32, name string) (value []byte, err error) {
	err = n.inObjects(workload, func(r *revision) error {
		value, err = r.readObject(name)
		return err
	})
	return value, err
}

// WriteObject writes an object, as the machine has it in memory. Packets that wait for it go on.
func (n *NIC) WriteObject(_ context.Context, workload uint32, name string, value []byte) error {
	return n.inObjects(workload, func(r *revision) error {
		if err := r.writeObject(name, value); err != nil {
			return err
		}
		return n.modules.each(module.Module.Wrote)
	})
}

func (n *NIC) inObjects(workload uint32, f func(*revision) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.revision(workload)
	if r == nil {
		return fmt.Errorf("%w: workload %#x does not run on this NIC", backend.ErrNoObject, workload)
	}
	return f(r)
}

// maps calls f with each of the maps that the revision's program uses.
func (r *revision) maps(f func(*ebpf.Map, *ebpf.MapInfo) error) error {
	info, err := r.prog.Info()
	if err != nil {
		return err
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return err
		}
		info, err := m.Info()
		if err == nil {
			err = f(m, info)
		}
		if err := errors.Join(err, m.Close()); err != nil {
			return err
		}
	}
	return nil
}

// objects calls f with each of the author's global variables that can change.
func (r *revision) objects(f func(*ebpf.Map, btf.VarSecinfo) error) error {
	return r.maps(func(m *ebpf.Map, info *ebpf.MapInfo) error {
		if m.Flags()&unix.BPF_F_RDONLY_PROG != 0 || strings.HasPrefix(info.Name, ".rodata") { // kernel.Fit
			return nil
		}
		for _, v := range variables(info) {
			if err := f(m, v); err != nil {
				return err
			}
		}
		return nil
	})
}

// object calls f with the object of that name.
func (r *revision) object(name string, f func(*ebpf.Map, btf.VarSecinfo) error) error {
	var names []string
	found := false
	err := r.objects(func(m *ebpf.Map, v btf.VarSecinfo) error {
		names = append(names, v.Type.TypeName())
		if v.Type.TypeName() != name {
			return nil
		}
		found = true
		return f(m, v)
	})
	if err == nil && !found {
		slices.Sort(names)
		have := "none, or they were optimised away: `volatile` keeps them"
		if len(names) > 0 {
			have = strings.Join(names, ", ")
		}
		return fmt.Errorf("%w: %s: the lambda has %s", backend.ErrNoObject, name, have)
	}
	return err
}

func (r *revision) readObject(name string) (value []byte, err error) {
	err = r.object(name, func(m *ebpf.Map, v btf.VarSecinfo) error {
		section, err := m.LookupBytes(uint32(0))
		if err == nil {
			value = section[v.Offset : v.Offset+v.Size]
		}
		return err
	})
	return value, err
}

func (r *revision) writeObject(name string, value []byte) error {
	return r.object(name, func(m *ebpf.Map, v btf.VarSecinfo) error {
		if len(value) != int(v.Size) {
			return fmt.Errorf("%w: object %s: %d bytes for an object of %d", backend.ErrObjectSize, name, len(value), v.Size)
		}
		if m.Flags()&unix.BPF_F_MMAPABLE != 0 {
			return writeMapped(m, int(v.Offset), value) // leaves the rest of the section alone
		}
		section, err := m.LookupBytes(uint32(0))
		if err != nil {
			return err
		}
		copy(section[v.Offset:], value)
		return m.Put(uint32(0), section)
	})
}

// variables are the global variables in a section's map.
func variables(info *ebpf.MapInfo) []btf.VarSecinfo {
	id, ok := info.BTFID()
	if !ok || info.Type != ebpf.Array || info.MaxEntries != 1 {
		return nil
	}
	handle, err := btf.NewHandleFromID(id)
	if err != nil {
		return nil
	}
	defer handle.Close()
	spec, err := handle.Spec(nil)
	if err != nil {
		return nil
	}
	var section *btf.Datasec
	if err := spec.TypeByName(info.Name, &section); err != nil {
		return nil
	}
	return section.Vars
}

func writeMapped(m *ebpf.Map, at int, value []byte) error {
	section, err := mapped.Array[byte](m)
	if err != nil {
		return err
	}
	copy(section[at:], value)
	return mapped.Unmap(section)
}
