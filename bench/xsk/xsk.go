// Package xsk is the bare echo in a thread of this process, which gets frames by AF_XDP (Documentation/networking/af_xdp.rst) and answers them by it.
package xsk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/internal/live"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel bpf xsk.bpf.c -- -I../../bpf

// An Echo is attached to the measured end of a pair.
type Echo struct {
	link.Attachment
	TID     int       // of the thread that answers
	sockets []*socket // one for each queue
	thread  *live.Thread
	stopped atomic.Bool
}

// Attach starts an echo on a CPU. It waits for frames, or it spins.
func Attach(p *link.Pair, on int, spin bool) (e *Echo, err error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	spec.Maps[bpfMapSockets].MaxEntries = uint32(runtime.NumCPU()) // the pair has a queue for each CPU
	xdp.Untie(spec)                                                // as the program that it replaces
	var bpf bpfObjects
	if err := spec.LoadAndAssign(&bpf, nil); err != nil {
		return nil, fmt.Errorf("load the echo by AF_XDP: %w", err)
	}
	defer func() { err = errors.Join(err, bpf.Close()) }()
	e = &Echo{}
	if err := p.In(func() error { return e.open(p.Peer.Index, &bpf) }); err != nil {
		return nil, errors.Join(err, e.closeSockets())
	}
	if e.Attachment, err = p.AttachPeer(bpf.Deliver); err != nil {
		return nil, errors.Join(err, e.closeSockets())
	}
	e.thread = live.Go(func() error { return e.run(on, spin) })
	e.TID = e.thread.TID
	return e, nil
}

// open makes the sockets.
func (e *Echo) open(ifindex int, bpf *bpfObjects) error {
	for queue := range runtime.NumCPU() {
		s, err := open(ifindex, queue)
		if err != nil {
			return err
		}
		e.sockets = append(e.sockets, s)
		if err := bpf.Sockets.Put(uint32(queue), uint32(s.fd)); err != nil {
			return fmt.Errorf("give queue %d its AF_XDP socket: %w", queue, err)
		}
	}
	return nil
}

// Close ends the echo.
func (e *Echo) Close() error {
	e.stopped.Store(true)
	return errors.Join(e.Attachment.Close(), e.thread.Stop(), e.closeSockets())
}

func (e *Echo) closeSockets() error {
	var errs []error
	for _, s := range e.sockets {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

func (e *Echo) run(on int, spin bool) error {
	var set unix.CPUSet
	set.Set(on)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("bind to CPU %d: %w", on, err)
	}
	var fds []unix.PollFd
	for _, s := range e.sockets {
		fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
	}
	for !e.stopped.Load() {
		busy := spin
		for _, s := range e.sockets {
			more, err := s.answer()
			if err != nil {
				return err
			}
			busy = busy || more
		}
		if busy {
			continue
		}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for frames: %w", err)
		}
	}
	return nil
}

// Where a frame has what an echo changes: Ethernet, IPv4 without options, UDP, λ-RPC.
const (
	atAddresses = 14 + 12
	atPorts     = 14 + 20
	atChecksum  = atPorts + 6
	atType      = atPorts + 8 + 3
)

// turn makes a request its own response, as bench/frame.h does.
func turn(frame []byte) {
	swap(frame[:6], frame[6:12])
	swap(frame[atAddresses:][:4], frame[atAddresses+4:][:4])
	swap(frame[atPorts:][:2], frame[atPorts+2:][:2])
	sum := uint32(^binary.BigEndian.Uint16(frame[atChecksum:])) + uint32(api.TypeResponse) - uint32(frame[atType])
	if sum = sum&0xffff + sum>>16; sum != 0xffff {
		sum = ^sum
	}
	binary.BigEndian.PutUint16(frame[atChecksum:], uint16(sum))
	frame[atType] = byte(api.TypeResponse)
}

func swap(a, b []byte) {
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
}
