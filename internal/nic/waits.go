package nic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/veth"
)

// A lambda behind a match stage may wait for the host: its packets are parked in a map of its own (sdk/pif/pif_park.h) until the
// host has written what it waits for.

// parkedMap holds parked packets, by their keys.
const parkedMap = "pif_parked"

// ErrNoObject says that a lambda has no object of that name.
var ErrNoObject = errors.New("no such object")

// WriteObject writes one of the objects of a lambda behind a match stage, by its name in C, and resumes the packets that wait.
// The value has the object's size, as the machine has it in memory.
func (n *NIC) WriteObject(_ context.Context, workload uint32, name string, value []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.workloads[workload]
	if r == nil || !r.isStage() {
		return fmt.Errorf("write object %s: workload %#x is no match stage on this NIC", name, workload)
	}
	if err := r.writeObject(name, value); err != nil {
		return fmt.Errorf("write object %s of workload %#x: %w", name, workload, err)
	}
	if err := n.resumeParked(r); err != nil {
		return fmt.Errorf("resume what waits of workload %#x: %w", workload, err)
	}
	return nil
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

// writeObject finds the object in the section that holds it, by what the kernel knows of its types.
func (r *revision) writeObject(name string, value []byte) error {
	found := false
	err := r.maps(func(m *ebpf.Map, info *ebpf.MapInfo) error {
		at, size, ok := objectIn(info, name)
		if !ok {
			return nil
		}
		found = true
		if len(value) != int(size) {
			return fmt.Errorf("%d bytes for an object of %d", len(value), size)
		}
		section, err := m.LookupBytes(uint32(0))
		if err != nil {
			return err
		}
		if m.Flags()&unix.BPF_F_MMAPABLE != 0 {
			return writeMapped(m, int(at), value) // nothing else of the section is touched
		}
		copy(section[at:], value)
		return m.Put(uint32(0), section)
	})
	if err == nil && !found {
		return fmt.Errorf("%w: the lambda defines none, or it was optimised away", ErrNoObject)
	}
	return err
}

// objectIn is where a section's map has the object.
func objectIn(info *ebpf.MapInfo, name string) (at, size uint32, ok bool) {
	id, ok := info.BTFID()
	if !ok || info.Type != ebpf.Array || info.MaxEntries != 1 {
		return 0, 0, false
	}
	handle, err := btf.NewHandleFromID(id)
	if err != nil {
		return 0, 0, false
	}
	defer handle.Close()
	spec, err := handle.Spec(nil)
	if err != nil {
		return 0, 0, false
	}
	var section *btf.Datasec
	if err := spec.TypeByName(info.Name, &section); err != nil {
		return 0, 0, false
	}
	for _, v := range section.Vars {
		if v.Type.TypeName() == name {
			return v.Offset, v.Size, true
		}
	}
	return 0, 0, false
}

func writeMapped(m *ebpf.Map, at int, value []byte) error {
	page := unix.Getpagesize()
	size := (int(m.ValueSize()) + page - 1) / page * page
	mem, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the section: %w", err)
	}
	copy(mem[at:], value)
	return unix.Munmap(mem)
}

// resumePin is where the program that resumes a slot's packets is pinned.
func (n *NIC) resumePin(slot uint32) string {
	return filepath.Join(n.cfg.pins(), "resume", strconv.Itoa(int(slot)))
}

// resumeParked runs each packet that is parked now once more; those whose lambda waits on are parked again.
func (n *NIC) resumeParked(r *revision) error {
	if r.resume == nil {
		return nil // it never waits
	}
	return r.maps(func(m *ebpf.Map, info *ebpf.MapInfo) error {
		if info.Name != parkedMap {
			return nil
		}
		var keys [][]byte
		var key, value []byte
		entries := m.Iterate()
		for entries.Next(&key, &value) {
			keys = append(keys, append([]byte(nil), key...))
		}
		if err := entries.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
			return err
		}
		return veth.InNamed(n.rec.Namespace, func() error {
			for _, key := range keys {
				if err := r.resumeOne(key, n.rec.Index); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// resumeOne runs a parked packet on a live frame, so that its answer leaves by the interface.
func (r *revision) resumeOne(key []byte, index int) error {
	const size = 64
	context := make([]byte, 24) // struct xdp_md
	binary.NativeEndian.PutUint32(context[4:], size)
	binary.NativeEndian.PutUint32(context[12:], uint32(index))
	_, err := r.resume.Run(&ebpf.RunOptions{
		Data: append(key, make([]byte, size-len(key))...), Context: context, Repeat: 1, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES,
	})
	return err
}
