// Package demux lets ikernels share an interface: one XDP program, the root, hands each datagram over to the ikernel of its port.
//
// On an interface of target nic, the root is the NIC program, which serves its lambdas first. On any other it is a program of this package, which
// comes with the first ikernel and goes with the last.
package demux

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem demux demux demux.bpf.c

// A Root hands packets over to ikernels.
type Root struct {
	Ikernels *ebpf.Map         // their programs, by port (bpf/demux.h)
	Takes    func(uint16) bool // whether the root serves a port itself
	Attached func() error      // nil while the root is on its interface
	Close    func() error      // called when no ikernel is left
}

// Find returns the root that is this program, or nil if it is another's.
type Find func(ebpf.ProgramID) (*Root, error)

// A Demux attaches ikernels to interfaces.
type Demux struct {
	find  Find
	mu    sync.Mutex
	roots map[ebpf.ProgramID]*shared // that have ikernels
	taken map[place]bool
}

// shared is a root that has ikernels.
type shared struct {
	*Root
	ikernels int
}

// A place is where one ikernel can be.
type place struct {
	root ebpf.ProgramID
	port uint16
}

// New returns a Demux that knows the roots that find finds, besides its own. find may be nil.
func New(find Find) *Demux {
	return &Demux{find: find, roots: map[ebpf.ProgramID]*shared{}, taken: map[place]bool{}}
}

// A Port is where an ikernel gets its packets.
type Port struct {
	Interface string
	Mode      xdp.Mode // native or generic

	place
	demux *Demux
	on    *shared
}

// Attach hands over to a program the datagrams to a port that come by an interface. Call it on a thread of the interface's network namespace.
func (d *Demux) Attach(prog *ebpf.Program, name string, mode xdp.Mode, port uint16) (*Port, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &Port{Interface: name, place: place{port: port}, demux: d}
	if err := p.findRoot(mode); err != nil {
		return nil, fmt.Errorf("attach to interface %s: %w", name, err)
	}
	if err := p.take(prog, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("attach to interface %s: %w", name, err), p.leave())
	}
	return p, nil
}

// findRoot finds the root of the interface, or attaches one of our own.
func (p *Port) findRoot(mode xdp.Mode) error {
	i, err := net.InterfaceByName(p.Interface)
	if err != nil {
		return err
	}
	if p.root, p.Mode, err = xdp.Attached(i.Index); err != nil {
		return err
	}
	if p.on = p.demux.roots[p.root]; p.on != nil && p.on.Attached() == nil { // it may be found anew
		p.on.ikernels++
		return nil
	}
	var r *Root
	switch {
	case p.root == 0:
		r, err = p.attachRoot(i.Index, mode)
	case p.demux.find != nil:
		r, err = p.demux.find(p.root)
	}
	if err != nil {
		return err
	}
	if r == nil {
		return errors.New("another XDP program is attached: remove it first")
	}
	p.on = &shared{Root: r, ikernels: 1}
	p.demux.roots[p.root] = p.on
	return nil
}

// take takes the port for an ikernel.
func (p *Port) take(prog *ebpf.Program, mode xdp.Mode) error {
	switch {
	case mode != xdp.ModeAuto && mode != p.Mode:
		return fmt.Errorf("its XDP program runs in mode %s, which others use too: choose that mode, or auto", p.Mode)
	case p.demux.taken[p.place]:
		return fmt.Errorf("another ikernel has port %d: detach it first", p.port)
	case p.on.Takes(p.port):
		return fmt.Errorf("lambdas are reached at port %d: have the server listen at another", p.port)
	}
	if err := p.on.Ikernels.Put(uint32(p.port), prog); err != nil {
		return kernel.Fails("does not let a program hand packets over to an ikernel", err)
	}
	p.demux.taken[p.place] = true
	return nil
}

// Attached is nil while datagrams get to the ikernel.
func (p *Port) Attached() error {
	if err := p.on.Attached(); err != nil {
		return fmt.Errorf("interface %s has lost its ikernels: %w", p.Interface, err)
	}
	return nil
}

// Close has the port's datagrams go to its server again.
func (p *Port) Close() error {
	p.demux.mu.Lock()
	defer p.demux.mu.Unlock()
	delete(p.demux.taken, p.place)
	return errors.Join(p.on.Ikernels.Delete(uint32(p.port)), p.leave())
}

// leave closes the root if it has no other ikernels.
func (p *Port) leave() error {
	if p.on.ikernels--; p.on.ikernels > 0 {
		return nil
	}
	if p.demux.roots[p.root] == p.on {
		delete(p.demux.roots, p.root)
	}
	return p.on.Close()
}
