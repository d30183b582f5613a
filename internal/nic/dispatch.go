package nic

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// dispatch is the NIC's dispatch map in our memory. A word is changed by one aligned 64-bit store, so that the NIC program
// sees either the old revision or the new one (bpf/layout.h, LN_DISPATCH).
type dispatch struct {
	mem   []byte
	words []atomic.Uint64
}

func mapDispatch(m *ebpf.Map) (*dispatch, error) {
	mem, err := unix.Mmap(m.FD(), 0, int(m.MaxEntries())*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the dispatch table: %w", err)
	}
	return &dispatch{mem: mem, words: unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&mem[0])), m.MaxEntries())}, nil
}

func (d *dispatch) close() error {
	if d.words == nil {
		return nil
	}
	d.words = nil
	return unix.Munmap(d.mem)
}

func (d *dispatch) word(workload uint32) *atomic.Uint64 {
	return &d.words[workload&(uint32(len(d.words))-1)]
}

// send points a workload at a slot or a split, or at the host.
func (d *dispatch) send(workload uint32, state program.State, ref uint32) {
	d.word(workload).Store(uint64(workload>>16)<<48 | uint64(state)<<40 | uint64(ref)&0xffffff)
}

// forget removes a workload, unless another has its entry by now.
func (d *dispatch) forget(workload uint32) {
	w := d.word(workload)
	if v := w.Load(); uint32(v>>48) == workload>>16 {
		w.Store(0)
	}
}

// keepOnly removes every workload that no adopted revision serves: else the next revision in its slot would get its requests.
func (d *dispatch) keepOnly(workloads map[uint32]*revision) {
	kept := map[int]bool{}
	for _, r := range workloads {
		kept[int(r.entry())&(len(d.words)-1)] = true
	}
	for i := range d.words {
		if !kept[i] && d.words[i].Load() != 0 {
			d.words[i].Store(0)
		}
	}
}
