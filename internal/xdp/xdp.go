// Package xdp attaches XDP programs to interfaces.
package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Mode is how a NIC program is attached.
type Mode string

// The modes. ModeAuto is the driver's native mode, or generic mode if the driver has none, or would lose what the program sends. ModeOffload is native mode, with a lambda
// on the card besides.
const (
	ModeAuto    Mode = "auto"
	ModeNative  Mode = "native"
	ModeGeneric Mode = "generic"
	ModeOffload Mode = "offload"
)

// Attach attaches a program to the interface with this index, and says in which mode: native or generic.
func Attach(prog *ebpf.Program, index int, mode Mode) (link.Link, Mode, error) {
	attempts := map[Mode][]Mode{
		ModeAuto: {ModeNative, ModeGeneric}, ModeNative: {ModeNative}, ModeGeneric: {ModeGeneric}, ModeOffload: {ModeNative},
	}[mode]
	if mode == ModeAuto && isMute(index) {
		attempts = []Mode{ModeGeneric}
	}
	flags := map[Mode]link.XDPAttachFlags{
		ModeNative: link.XDPDriverMode, ModeGeneric: link.XDPGenericMode,
	}
	err := fmt.Errorf("mode %q is unknown: use auto, native, generic or offload", mode)
	for _, m := range attempts {
		var l link.Link
		if l, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: index, Flags: flags[m]}); err == nil {
			return l, m, nil
		}
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) {
			return nil, "", fmt.Errorf("another XDP program was attached meanwhile: try again: %w", err)
		}
	}
	if mode == ModeNative && errors.Is(err, unix.EOPNOTSUPP) {
		err = fmt.Errorf("the interface's driver runs no XDP program: use mode auto or generic: %w", err)
	}
	return nil, "", err
}

// Fits returns nil if a program can run in this mode, on an interface whose other programs run in theirs: native or generic.
func Fits(index int, mode, theirs Mode) error {
	native := mode == ModeNative || mode == ModeOffload
	switch {
	case native && theirs != ModeNative, mode == ModeGeneric && theirs != ModeGeneric:
		return fmt.Errorf("the XDP programs on the interface run in mode %s: choose that mode, or auto", theirs)
	case mode == ModeAuto && theirs == ModeNative && isMute(index):
		return errors.New("the XDP programs on the interface run in mode native, in which the veth would lose what the NIC program sends: " +
			"give the other end an XDP program, too, or load those by `xdp-loader load --mode skb`")
	}
	return nil
}

// Attached says which program is attached to the interface with this index in the thread's network namespace, and in which mode: native or generic.
// Without a program, it returns 0.
func Attached(index int) (ebpf.ProgramID, Mode, error) {
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return 0, "", fmt.Errorf("look at interface %d: %w", index, err)
	}
	at := l.Attrs().Xdp
	switch {
	case at == nil || !at.Attached:
		return 0, "", nil
	case at.AttachMode == nl.XDP_ATTACHED_SKB:
		return ebpf.ProgramID(at.ProgId), ModeGeneric, nil
	}
	return ebpf.ProgramID(at.ProgId), ModeNative, nil
}

// Holds returns nil while a link holds a program on the interface with this index. The program goes with the interface.
func Holds(l link.Link, index int) error {
	info, err := l.Info()
	if err != nil {
		return fmt.Errorf("look at the link of an XDP program: %w", err)
	}
	if info.XDP() == nil || int(info.XDP().Ifindex) != index {
		return errors.New("the interface is gone, or has lost the XDP program")
	}
	return nil
}

// Untie takes the attach type, of which XDP programs need none, from all that are in a spec. A program in the place of a dispatcher's function
// (package dispatcher) has none, and the kernel lets a program tail-call those of its own attach type only (__bpf_prog_map_compatible() in Linux's
// kernel/bpf/core.c).
func Untie(spec *ebpf.CollectionSpec) {
	for _, p := range spec.Programs {
		if p.Type == ebpf.XDP && p.AttachType == ebpf.AttachXDP {
			p.AttachType = ebpf.AttachNone
		}
	}
}

// Verdicts of XDP programs (linux/bpf.h).
const (
	Drop = 1
	Pass = 2
	TX   = 3
)

// Verdict loads a program of two instructions that return a verdict.
func Verdict(verdict int32) (*ebpf.Program, error) {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "ln_verdict", Type: ebpf.XDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()},
	})
	if err != nil {
		return nil, fmt.Errorf("load an XDP program that returns %d: %w", verdict, err)
	}
	return prog, nil
}

// AttachPass attaches "return XDP_PASS" to the interface with this index. Without a program, that end of a veth pair leaves in the ring what
// the other sends by XDP_TX.
func AttachPass(index int) (link.Link, error) {
	prog, err := Verdict(Pass)
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	l, _, err := Attach(prog, index, ModeNative)
	return l, err
}

// Words is an address as NIC programs compare it (struct ln_flow in bpf/layout.h); zero for none.
func Words(a netip.Addr) [2]uint64 {
	var b [16]byte
	copy(b[:], a.AsSlice())
	return [2]uint64{binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(b[8:])}
}
