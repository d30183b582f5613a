// Package card lets a card run a lambda, ahead of the host's driver and the NIC program.
package card

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/report"
	"github.com/lambdanic/lambdanic/internal/nic/load"
	"github.com/lambdanic/lambdanic/internal/nic/module"
)

// A Port is where a card's program goes: the device that it is translated for, 0 for the host's processor, and how it is attached to
// an interface.
type Port struct {
	Device    uint32
	Interface int
	Flags     link.XDPAttachFlags
}

// Module is one NIC's card. It has at most one lambda, since a card runs one program.
type Module struct {
	module.Base
	Stand *Port // tests: what stands for a card

	nic      module.NIC
	workload uint32 // whose program the card runs; 0: none
	link     link.Link
	next     *onCard // of the deployment that is being prepared; nil if it does not use the card
}

var _ module.Module = (*Module)(nil)

// onCard is a lambda's program that the card has loaded, and does not run yet.
type onCard struct {
	workload uint32
	coll     *ebpf.Collection
}

// Open implements module.Module.
func (m *Module) Open(nic module.NIC, _ *ebpf.Collection) error {
	m.nic = nic
	return nil
}

func (m *Module) port() Port {
	if m.Stand != nil {
		return *m.Stand
	}
	index := m.nic.Site().Index
	return Port{Device: uint32(index), Interface: index, Flags: link.XDPOffloadMode}
}

// The pins of a card: its link, and the map that says whose requests it answers.
func (m *Module) pin() string       { return m.nic.Site().Pin("card_link") }
func (m *Module) configPin() string { return m.nic.Site().Pin(compiler.NFPConfigMap) }

// Prepare loads a lambda that asks for the card into it.
func (m *Module) Prepare(ctx context.Context, c *module.Change) (err error) {
	m.next = nil
	if !m.nic.Site().Offload || !c.Spec.Offload {
		return nil
	}
	site, own := m.nic.Site(), m.nic.Reach().Addr
	if m.workload != 0 && m.workload != c.Workload {
		return fmt.Errorf("%w: offload: the card runs one program, and has that of workload %#x: deploy that without offload first", load.ErrRefused, m.workload)
	}
	if !own.Is4() {
		return fmt.Errorf("%w: offload: the card speaks IPv4, and %s has no such address: give it one with `ip addr add`", load.ErrRefused, site.Interface)
	}
	found, err := report.Offload(ctx, c.Source)
	if err != nil {
		return fmt.Errorf("offload: %w", err)
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: offload: %v (`lambdanic build --target nfp` lists all that keeps it off the card)", load.ErrRefused, found[0])
	}
	object, err := compiler.ForNFP(ctx, c.Source)
	if err != nil {
		return fmt.Errorf("offload: %w", err)
	}
	coll, err := m.port().load(object)
	if err != nil {
		return fmt.Errorf("%w: offload: %w", load.ErrRefused, err)
	}
	config := compiler.NFPConfig{Workload: c.Workload, Revision: c.Revision, Address: own.As4()}
	if err := coll.Maps[compiler.NFPConfigMap].Put(uint32(0), config); err != nil {
		coll.Close()
		return fmt.Errorf("offload: tell the card its workload: %w", err)
	}
	m.next = &onCard{c.Workload, coll}
	return nil
}

// Dropped implements module.Module.
func (m *Module) Dropped() error {
	if m.next != nil {
		m.next.coll.Close()
		m.next = nil
	}
	return nil
}

// load puts a program and its maps onto the port's device.
func (p Port) load(object []byte) (*ebpf.Collection, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	maps := map[string]*ebpf.Map{}
	defer func() {
		for _, m := range maps { // the collection has its own descriptors
			_ = m.Close()
		}
	}()
	for name, m := range spec.Maps {
		if maps[name], err = p.newMap(m); err != nil {
			delete(maps, name)
			return nil, fmt.Errorf("the device does not take the map %s: %w", name, err)
		}
	}
	for _, prog := range spec.Programs {
		prog.Ifindex = p.Device
	}
	coll, err := load.Collection(spec, maps)
	if err != nil {
		return nil, fmt.Errorf("the device does not take the program: %w", err)
	}
	return coll, nil
}

// newMap makes a map in the memory of the port's device, an option of BPF_MAP_CREATE that cilium/ebpf lacks.
func (p Port) newMap(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	attr := struct { // union bpf_attr in include/uapi/linux/bpf.h
		mapType, keySize, valueSize, maxEntries, flags, innerFD, node uint32
		name                                                          [unix.BPF_OBJ_NAME_LEN]byte
		ifindex                                                       uint32
	}{
		mapType: uint32(spec.Type), keySize: spec.KeySize, valueSize: spec.ValueSize, maxEntries: spec.MaxEntries, flags: spec.Flags,
		ifindex: p.Device,
	}
	copy(attr.name[:len(attr.name)-1], spec.Name)
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return nil, errno
	}
	return ebpf.NewMapFromFD(int(fd))
}

// Swapped makes the card run the revision that serves now. Until then the card answers as the revision before, while the new one gets
// what the card leaves to the host. After an error the card answers nothing, and the NIC program everything.
func (m *Module) Swapped(serve []*module.Revision) error {
	if next := m.next; next != nil {
		m.next = nil
		defer next.coll.Close()
		if err := m.attach(next); err != nil {
			return errors.Join(fmt.Errorf("the card answers nothing: put workload %#x onto it: %w", next.workload, err), m.clear())
		}
		m.workload = next.workload
		return nil
	}
	for _, r := range serve {
		if m.workload != 0 && r.Record.Workload == m.workload {
			return m.clear()
		}
	}
	return nil
}

func (m *Module) attach(next *onCard) error {
	prog, config := next.coll.Programs[compiler.Program], next.coll.Maps[compiler.NFPConfigMap]
	if err := load.Pin(config, m.configPin()); err != nil {
		return err
	}
	if m.link != nil {
		return m.link.Update(prog)
	}
	p := m.port()
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: p.Interface, Flags: p.Flags})
	if err != nil {
		return err
	}
	m.link = l
	return load.Pin(l, m.pin())
}

// Adopted takes over the program that an earlier daemon put onto the card.
func (m *Module) Adopted() error {
	l, err := link.LoadPinnedLink(m.pin(), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the link of the card: %w", err)
	}
	m.link = l
	pinned, err := ebpf.LoadPinnedMap(m.configPin(), nil)
	if err != nil {
		return fmt.Errorf("open the card's configuration: %w", err)
	}
	defer pinned.Close()
	var config compiler.NFPConfig
	if err := pinned.Lookup(uint32(0), &config); err != nil {
		return fmt.Errorf("read the card's configuration: %w", err)
	}
	m.workload = config.Workload
	if m.nic.Serving(config.Workload) == nil { // its removal was interrupted
		return m.clear()
	}
	return nil
}

// Removed implements module.Module.
func (m *Module) Removed(workload uint32) error {
	if m.workload != workload {
		return nil
	}
	return m.clear()
}

// clear takes the program off the card.
func (m *Module) clear() error {
	if m.link == nil {
		return nil
	}
	err := errors.Join(m.link.Unpin(), m.link.Close())
	m.link, m.workload = nil, 0
	if err != nil {
		return fmt.Errorf("clear the card: %w", err)
	}
	return nil
}

// Close releases the card, which goes on answering.
func (m *Module) Close() error {
	if m.link == nil {
		return nil
	}
	err := m.link.Close()
	m.link, m.workload = nil, 0
	return err
}
