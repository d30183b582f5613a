package nic

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/internal/xdp/dispatcher"
)

// An attachment keeps the NIC program on its interface.
type attachment interface {
	program() *ebpf.Program // as it runs there
	holds(index int) error  // nil while it is there
	Close() error           // leaves it there
}

// alone is the attachment of a root that has the interface for itself.
type alone struct {
	link.Link
	root *ebpf.Program
}

func (a alone) program() *ebpf.Program { return a.root }

func (a alone) holds(index int) error { return xdp.Holds(a.Link, index) }

// among is the attachment of a root that shares the interface with XDP programs of others, under a dispatcher.
type among struct{ *ebpf.Program }

func (a among) program() *ebpf.Program { return a.Program }

func (a among) holds(index int) error {
	info, err := a.Info()
	if err != nil {
		return fmt.Errorf("look at the NIC program: %w", err)
	}
	id, _ := info.ID()
	return dispatcher.Holds(id, index)
}

// A NIC has one of these pins, for its kind of attachment.
func (c Config) linkPin() string { return filepath.Join(c.pins(), "root_link") }

func (c Config) extensionPin() string { return filepath.Join(c.pins(), "root_extension") }

// attach puts the root program on the interface. The host's end of a virtual NIC gets a program of two instructions, without which
// packets that the far end sends by XDP_TX would stay in the ring.
func (n *NIC) attach() error {
	if n.rec.HostEnd != "" {
		if err := attachPass(n.rec.HostEnd, filepath.Join(n.cfg.pins(), "host_link")); err != nil {
			return err
		}
		n.cfg.reached("host's end attached")
	}
	return veth.InNamed(n.rec.Namespace, func() error {
		l, err := netlink.LinkByName(n.rec.Interface)
		if err != nil {
			return fmt.Errorf("find interface %s: %w", n.rec.Interface, err)
		}
		n.rec.Index = l.Attrs().Index
		if n.cfg.Mode == ModeOffload && n.cfg.card == nil {
			if err := checkOffload(n.rec.Interface); err != nil {
				return err
			}
		}
		if err := n.attachRoot(); err != nil {
			return fmt.Errorf("attach the NIC program to %s: %w", n.rec.Interface, err)
		}
		if n.rec.Mode == ModeGeneric {
			if err := n.prog.Generic.Set(uint8(1)); err != nil {
				return fmt.Errorf("tell the NIC program that it is attached in generic mode: %w", err)
			}
		}
		if n.rec.Mode == ModeGeneric && n.cfg.Mode == ModeAuto {
			n.cfg.Log.Warn("attached in generic mode, which is slower: the driver has no XDP, or the other end of the veth has no XDP program", "interface", n.rec.Interface)
		}
		return nil
	})
}

// attachRoot attaches the root alone, or has it join the XDP programs that are there.
func (n *NIC) attachRoot() error {
	mode, err := dispatcher.Shared(n.rec.Index)
	if err != nil {
		return err
	}
	if mode != "" {
		n.rec.Mode = mode
		return n.join()
	}
	l, mode, err := xdp.Attach(n.prog.Root, n.rec.Index, n.cfg.Mode)
	if err != nil {
		return err
	}
	n.root, n.rec.Mode = alone{Link: l, root: n.prog.Root}, mode
	return l.Pin(n.cfg.linkPin())
}

// join has the root share the interface, in the mode in which the other programs run. The pin comes first: by it, leave finds the root.
func (n *NIC) join() error {
	if err := xdp.Fits(n.rec.Index, n.cfg.Mode, n.rec.Mode); err != nil {
		return err
	}
	target, err := dispatcher.Target()
	if err != nil {
		return err
	}
	defer target.Close()
	root, err := n.prog.Extension(n.cfg.program(), target, dispatcher.TargetFunction)
	if err != nil {
		return err
	}
	n.root = among{root}
	if err := root.Pin(n.cfg.extensionPin()); err != nil {
		return fmt.Errorf("pin the NIC program: %w", err)
	}
	n.cfg.reached("extension pinned")
	return dispatcher.Join(root, n.rec.Index)
}

// openAttachment opens the attachment that an earlier daemon pinned.
func (c Config) openAttachment(root *ebpf.Program) (attachment, error) {
	prog, err := ebpf.LoadPinnedProgram(c.extensionPin(), nil)
	if err == nil {
		return among{prog}, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open the pinned NIC program: %w", err)
	}
	l, err := link.LoadPinnedLink(c.linkPin(), nil)
	if err != nil {
		return nil, fmt.Errorf("open the pinned link: %w", err)
	}
	return alone{Link: l, root: root}, nil
}

// leave takes a root that shares its interface off it, and leaves the others there. Any other goes with its pins.
func (c Config) leave() error {
	prog, err := ebpf.LoadPinnedProgram(c.extensionPin(), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the pinned NIC program: %w", err)
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return fmt.Errorf("look at the NIC program: %w", err)
	}
	id, _ := info.ID()
	if err := dispatcher.Leave(id); err != nil {
		return fmt.Errorf("take the NIC program off its interface: %w", err)
	}
	return nil
}

// program are the settings of the NIC program.
func (c Config) program() program.Config {
	return program.Config{
		Pins: c.pins(), Limits: c.limits(), Slots: c.Slots, UnknownError: c.UnknownError, Verify: c.Verify, Alter: c.alter,
	}
}

// attachPass attaches "return XDP_PASS" to an interface.
func attachPass(iface, pin string) error {
	l, err := netlink.LinkByName(iface)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", iface, err)
	}
	pass, err := xdp.AttachPass(l.Attrs().Index)
	if err != nil {
		return fmt.Errorf("attach XDP_PASS to %s: %w", iface, err)
	}
	return errors.Join(pass.Pin(pin), pass.Close())
}
