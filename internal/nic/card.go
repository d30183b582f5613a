package nic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/report"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// A port is where a card's program goes: the device that it is translated for, 0 for the host's own processor, and how it is attached
// to an interface. A card runs its program ahead of the host's driver, and so of the NIC program.
type port struct {
	device    uint32
	Interface int
	flags     link.XDPAttachFlags
}

// card is what a NIC's card has: one lambda at most, since it runs one program. The zero value has none.
type card struct {
	workload uint32
	link     link.Link
}

// onCard is a lambda's program that a card has taken, and does not run yet.
type onCard struct {
	workload uint32
	coll     *ebpf.Collection
}

func (c *onCard) close() error {
	if c != nil {
		c.coll.Close()
	}
	return nil
}

func (n *NIC) port() port {
	if n.cfg.card != nil {
		return *n.cfg.card
	}
	return port{uint32(n.rec.Index), n.rec.Index, link.XDPOffloadMode}
}

// The pins of a card: its link, and the map that says whose requests it answers.
func (c Config) cardPin() string       { return filepath.Join(c.pins(), "card_link") }
func (c Config) cardConfigPin() string { return filepath.Join(c.pins(), compiler.NFPConfigMap) }

// prepareCard has the card take a lambda that asks for it; nil where none asks, or no card is used.
func (n *NIC) prepareCard(ctx context.Context, d *backend.Deployment) (*onCard, error) {
	if n.cfg.Mode != ModeOffload || !d.Spec.Offload {
		return nil, nil
	}
	if n.card.workload != 0 && n.card.workload != d.Workload {
		return nil, fmt.Errorf("%w: offload: the card runs one program, and has that of workload %#x: deploy that without offload first", ErrRefused, n.card.workload)
	}
	if !n.reach.Load().Addr.Is4() {
		return nil, fmt.Errorf("%w: offload: the card speaks IPv4, and %s has no such address: give it one with `ip addr add`", ErrRefused, n.rec.Interface)
	}
	found, err := report.Offload(ctx, d.Source)
	if err != nil {
		return nil, fmt.Errorf("offload: %w", err)
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%w: offload: %v (`lambdanic build --target nfp` lists all that keeps it off the card)", ErrRefused, found[0])
	}
	object, err := compiler.ForNFP(ctx, d.Source)
	if err != nil {
		return nil, fmt.Errorf("offload: %w", err)
	}
	coll, err := n.port().load(object)
	if err != nil {
		return nil, fmt.Errorf("%w: offload: %w", ErrRefused, err)
	}
	config := compiler.NFPConfig{Workload: d.Workload, Revision: d.Revision, Address: n.reach.Load().Addr.As4()}
	if err := coll.Maps[compiler.NFPConfigMap].Put(uint32(0), config); err != nil {
		coll.Close()
		return nil, fmt.Errorf("offload: tell the card its workload: %w", err)
	}
	return &onCard{d.Workload, coll}, nil
}

// load puts a program and its maps onto the port's device.
func (p port) load(object []byte) (*ebpf.Collection, error) {
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
		prog.Ifindex = p.device
	}
	coll, err := newCollection(spec, maps)
	if err != nil {
		return nil, fmt.Errorf("the device does not take the program: %w", verifierError(err))
	}
	return coll, nil
}

// newMap makes a map in the memory of the port's device. That is the one option of BPF_MAP_CREATE which cilium/ebpf has not.
func (p port) newMap(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	attr := struct { // union bpf_attr in include/uapi/linux/bpf.h
		mapType, keySize, valueSize, maxEntries, flags, innerFD, node uint32
		name                                                          [unix.BPF_OBJ_NAME_LEN]byte
		ifindex                                                       uint32
	}{
		mapType: uint32(spec.Type), keySize: spec.KeySize, valueSize: spec.ValueSize, maxEntries: spec.MaxEntries, flags: spec.Flags,
		ifindex: p.device,
	}
	copy(attr.name[:len(attr.name)-1], spec.Name)
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return nil, errno
	}
	return ebpf.NewMapFromFD(int(fd))
}

// swapCard makes the card answer as the revisions that serve now. Until it does, it answers as the revision before; what it leaves to
// the host meets the new one. After an error it answers nothing, and the NIC program everything.
func (n *NIC) swapCard(serve []succession, next *onCard) error {
	if next != nil {
		defer next.coll.Close()
		if err := n.attachCard(next); err != nil {
			return errors.Join(fmt.Errorf("put workload %#x onto the card: %w", next.workload, err), n.card.clear())
		}
		n.card.workload = next.workload
		return nil
	}
	for _, s := range serve {
		if n.card.workload != 0 && s.r.rec.Workload == n.card.workload {
			return n.card.clear()
		}
	}
	return nil
}

func (n *NIC) attachCard(next *onCard) error {
	prog, config := next.coll.Programs[compiler.Program], next.coll.Maps[compiler.NFPConfigMap]
	if err := pinOver(config, n.cfg.cardConfigPin()); err != nil {
		return err
	}
	if n.card.link != nil {
		return n.card.link.Update(prog)
	}
	p := n.port()
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: p.Interface, Flags: p.flags})
	if err != nil {
		return err
	}
	n.card.link = l
	return pinOver(l, n.cfg.cardPin())
}

// adoptCard takes over what an earlier daemon put onto the card.
func (n *NIC) adoptCard() (err error) {
	if n.card.link, err = link.LoadPinnedLink(n.cfg.cardPin(), nil); errors.Is(err, os.ErrNotExist) {
		n.card.link = nil
		return nil
	} else if err != nil {
		return fmt.Errorf("open the link of the card: %w", err)
	}
	m, err := ebpf.LoadPinnedMap(n.cfg.cardConfigPin(), nil)
	if err != nil {
		return fmt.Errorf("open the card's configuration: %w", err)
	}
	defer m.Close()
	var config compiler.NFPConfig
	if err := m.Lookup(uint32(0), &config); err != nil {
		return fmt.Errorf("read the card's configuration: %w", err)
	}
	n.card.workload = config.Workload
	if n.revision(config.Workload) == nil { // its removal was interrupted
		return n.card.clear()
	}
	return nil
}

// clear takes the program off the card.
func (c *card) clear() error {
	if c.link == nil {
		return nil
	}
	err := errors.Join(c.link.Unpin(), c.link.Close())
	*c = card{}
	if err != nil {
		return fmt.Errorf("clear the card: %w", err)
	}
	return nil
}

// close lets go of the card and leaves it answering.
func (c *card) close() error {
	if c.link == nil {
		return nil
	}
	err := c.link.Close()
	*c = card{}
	return err
}
