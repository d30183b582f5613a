package nic

import (
	"sync/atomic"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/mapped"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// dispatch is the NIC's dispatch map in our memory. A word is changed by one aligned 64-bit store, so that the NIC program
// sees either the old revision or the new one (bpf/layout.h, LN_DISPATCH).
type dispatch struct {
	words []atomic.Uint64
}

func mapDispatch(m *ebpf.Map) (*dispatch, error) {
	words, err := mapped.Array[atomic.Uint64](m)
	return &dispatch{words}, err
}

func (d *dispatch) close() error {
	words := d.words
	d.words = nil
	return mapped.Unmap(words)
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
