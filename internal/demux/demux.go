// Package demux lets ikernels share an interface: one XDP program, the root, hands each datagram over to the ikernel of its port.
//
// On an interface of target nic, the root is the NIC program, which serves its lambdas first. On any other it is a program of this package, which
// comes with the first ikernel and goes with the last.
package demux

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/internal/xdp/dispatcher"
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
	find   Find
	mu     sync.Mutex
	roots  map[ebpf.ProgramID]*shared // that have ikernels
	chains map[place]*chain
}

// shared is a root that has ikernels.
type shared struct {
	*Root
	ikernels int
}

// A place is where ikernels can be.
type place struct {
	root ebpf.ProgramID
	port uint16
}

// New returns a Demux that knows the roots that find finds, besides its own. find may be nil.
func New(find Find) *Demux {
	return &Demux{find: find, roots: map[ebpf.ProgramID]*shared{}, chains: map[place]*chain{}}
}

// An Attachment is an ikernel that gets the datagrams to a port.
type Attachment struct {
	ikernel *Ikernel
	ports   []*Port
	demux   *Demux
	chain   *chain
}

// A Port is where an ikernel gets its packets.
type Port struct {
	Interface string
	Mode      xdp.Mode // native or generic

	place
	demux *Demux
	on    *shared
}

// Attach hands over to an ikernel the datagrams to a port that come by these interfaces. Call it on a thread of their network namespace. Ikernels with the
// same port share it: see Ikernel.
func (d *Demux) Attach(k *Ikernel, interfaces []string, mode xdp.Mode, port uint16) (*Attachment, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := &Attachment{ikernel: k, demux: d}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(interfaces))) {
		p := &Port{Interface: name, place: place{port: port}, demux: d}
		if err := p.open(mode); err != nil {
			return nil, errors.Join(fmt.Errorf("attach to interface %s: %w", name, err), a.leave())
		}
		a.ports = append(a.ports, p)
	}
	if err := a.enter(port); err != nil {
		return nil, errors.Join(err, a.leave())
	}
	return a, nil
}

// Ports lists where the ikernel gets its packets.
func (a *Attachment) Ports() []*Port { return a.ports }

// Close has the port's datagrams go to the next ikernel, or else to their server.
func (a *Attachment) Close() error {
	a.demux.mu.Lock()
	defer a.demux.mu.Unlock()
	return errors.Join(a.exit(), a.leave())
}

// leave gives up the ports.
func (a *Attachment) leave() error {
	var errs []error
	for _, p := range a.ports {
		errs = append(errs, p.leave())
	}
	return errors.Join(errs...)
}

// open finds the root of the interface, and whether it hands over the port's datagrams.
func (p *Port) open(mode xdp.Mode) error {
	if err := p.findRoot(mode); err != nil {
		return err
	}
	switch {
	case mode != xdp.ModeAuto && mode != p.Mode:
		return errors.Join(fmt.Errorf("its XDP program runs in mode %s, which others use too: choose that mode, or auto", p.Mode), p.leave())
	case p.on.Takes(p.port):
		return errors.Join(fmt.Errorf("lambdas are reached at port %d: have the server listen at another", p.port), p.leave())
	}
	return nil
}

// findRoot finds the root of the interface, or attaches one of our own.
func (p *Port) findRoot(mode xdp.Mode) error {
	i, err := net.InterfaceByName(p.Interface)
	if err != nil {
		return err
	}
	running, there, err := dispatcher.Running(i.Index)
	if err != nil {
		return err
	}
	if len(running) == 0 {
		return p.attachRoot(i.Index, mode)
	}
	p.Mode = there
	for _, id := range running {
		if found, err := p.findAmong(id); found || err != nil {
			return err
		}
	}
	return errors.New("another XDP program is attached: remove it first, or have a NIC share the interface with it (lambdanic up --nic)")
}

// findAmong says whether a program of the interface is a root.
func (p *Port) findAmong(id ebpf.ProgramID) (bool, error) {
	p.root = id
	if p.on = p.demux.roots[id]; p.on != nil && p.on.Attached() == nil { // it may be found anew
		p.on.ikernels++
		return true, nil
	}
	if p.demux.find == nil {
		return false, nil
	}
	r, err := p.demux.find(id)
	if err != nil || r == nil {
		return false, err
	}
	p.hold(r)
	return true, nil
}

// hold has the port's ikernels hang from a root that had none.
func (p *Port) hold(r *Root) {
	p.on = &shared{Root: r, ikernels: 1}
	p.demux.roots[p.root] = p.on
}

// Attached is nil while datagrams get to the ikernel.
func (p *Port) Attached() error {
	if err := p.on.Attached(); err != nil {
		return fmt.Errorf("interface %s has lost its ikernels: %w", p.Interface, err)
	}
	return nil
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
