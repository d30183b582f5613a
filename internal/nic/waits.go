package nic

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"strconv"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/veth"
)

// A lambda behind a match stage may wait for the host: its packets are parked in a map of its own (sdk/pif/pif_park.h) until the
// host has written what it waits for.

// parkedMap holds parked packets, by their keys.
const parkedMap = "pif_parked"

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
				if err := n.resumeOne(key); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// resumeOne runs a parked packet on a live frame, so that its answer leaves by the interface, if the root lets it.
func (n *NIC) resumeOne(key []byte) error {
	const size = 64
	context := make([]byte, 24) // struct xdp_md
	binary.NativeEndian.PutUint32(context[4:], size)
	binary.NativeEndian.PutUint32(context[12:], uint32(n.rec.Index))
	_, err := n.objs.LnResumeWaiting.Run(&ebpf.RunOptions{
		Data: append(key, make([]byte, size-len(key))...), Context: context, Repeat: 1, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES,
	})
	return err
}
