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
}

// shared is a root and the ports that have ikernels.
type shared struct {
	*Root
	ports map[uint16]bool
}

// New returns a Demux that knows the roots that find finds, besides its own. find may be nil.
func New(find Find) *Demux { return &Demux{find: find, roots: map[ebpf.ProgramID]*shared{}} }

// A Port is where an ikernel gets its packets.
type Port struct {
	Interface string
	Mode      xdp.Mode // native or generic

	number uint16
	demux  *Demux
	id     ebpf.ProgramID
	root   *shared
}

// Attach hands over to a program the datagrams to a port that come by an interface. Call it on a thread of the interface's network namespace.
func (d *Demux) Attach(prog *ebpf.Program, name string, mode xdp.Mode, port uint16) (*Port, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &Port{Interface: name, number: port, demux: d}
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
	if p.id, p.Mode, err = xdp.Attached(i.Index); err != nil {
		return err
	}
	if p.root = p.demux.roots[p.id]; p.root != nil {
		return nil
	}
	var r *Root
	switch {
	case p.id == 0:
		r, err = p.attachRoot(i.Index, mode)
	case p.demux.find != nil:
		r, err = p.demux.find(p.id)
	}
	if err != nil {
		return err
	}
	if r == nil {
		return errors.New("another XDP program is attached: remove it first")
	}
	p.root = &shared{Root: r, ports: map[uint16]bool{}}
	p.demux.roots[p.id] = p.root
	return nil
}

// take takes the port for an ikernel.
func (p *Port) take(prog *ebpf.Program, mode xdp.Mode) error {
	switch {
	case mode != xdp.ModeAuto && mode != p.Mode:
		return fmt.Errorf("its XDP program runs in mode %s, which others use too: choose that mode, or auto", p.Mode)
	case p.root.ports[p.number]:
		return fmt.Errorf("another ikernel has port %d: detach it first", p.number)
	case p.root.Takes(p.number):
		return fmt.Errorf("lambdas are reached at port %d: have the server listen at another", p.number)
	}
	if err := p.root.Ikernels.Put(uint32(p.number), prog); err != nil {
		return kernel.Fails("does not let a program hand packets over to an ikernel", err)
	}
	p.root.ports[p.number] = true
	return nil
}

// Attached is nil while datagrams get to the ikernel.
func (p *Port) Attached() error {
	if err := p.root.Attached(); err != nil {
		return fmt.Errorf("interface %s has lost its ikernels: %w", p.Interface, err)
	}
	return nil
}

// Close has the port's datagrams go to its server again.
func (p *Port) Close() error {
	p.demux.mu.Lock()
	defer p.demux.mu.Unlock()
	delete(p.root.ports, p.number)
	return errors.Join(p.root.Ikernels.Delete(uint32(p.number)), p.leave())
}

// leave closes the root if it has no ikernels.
func (p *Port) leave() error {
	if len(p.root.ports) > 0 {
		return nil
	}
	delete(p.demux.roots, p.id)
	return p.root.Close()
}
