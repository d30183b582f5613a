// Package queue is the bare echo behind a queue, in place of the NIC program: what it costs that packets wait for a thread, on this or another CPU.
package queue

import (
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/bench/cpu"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel bpf queue.bpf.c -- -I../../bpf

// A Queue is attached to the measured end of a pair.
type Queue struct {
	link.Attachment
	PID int // of the kernel thread that answers
}

// Attach puts the queue there, with the thread on a CPU.
func Attach(p *link.Pair, on int) (*Queue, error) {
	bpf, err := load(on)
	if err != nil {
		return nil, err
	}
	q, err := bpf.attach(p, on)
	return q, errors.Join(err, bpf.Close())
}

type objects struct{ bpfObjects }

func load(on int) (*objects, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	spec.Maps[bpfMapQueues].MaxEntries = uint32(on) + 1 // its keys are CPUs
	if err := spec.Variables[bpfVarCpu].Set(uint32(on)); err != nil {
		return nil, err
	}
	xdp.Untie(spec) // as the program that it replaces
	bpf := &objects{}
	if err := spec.LoadAndAssign(&bpf.bpfObjects, nil); err != nil {
		return nil, fmt.Errorf("load the queue: %w", err)
	}
	return bpf, nil
}

func (bpf *objects) attach(p *link.Pair, on int) (q *Queue, err error) {
	if err := p.In(func() error { return bpf.Out.Put(uint32(0), uint32(p.Peer.Index)) }); err != nil {
		return nil, fmt.Errorf("answer by %s: %w", p.Peer.Name, err)
	}
	entry := struct{ Length, Program uint32 }{uint32(bpfLnQueueLimitLN_QUEUE_LENGTH), uint32(bpf.Answer.FD())} // struct bpf_cpumap_val
	if err := bpf.Queues.Put(uint32(on), entry); err != nil {
		return nil, fmt.Errorf("have CPU %d answer: %w", on, err)
	}
	info, err := bpf.Queues.Info()
	if err != nil {
		return nil, err
	}
	id, _ := info.ID() // kernels that cpumap's programs need tell it
	q = &Queue{}
	if q.PID, err = cpu.QueueThread(id, on); err != nil {
		return nil, err
	}
	if q.Attachment, err = p.AttachPeer(bpf.Enqueue); err != nil {
		return nil, err
	}
	return q, nil
}
