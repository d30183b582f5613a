package link

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	xdp "github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// The XDP verdicts of linux/bpf.h that a bare program may consist of.
const (
	VerdictDrop = 1
	VerdictPass = 2
)

// Attachment is an XDP program on one end of a pair.
type Attachment interface {
	Close() error
}

// AttachHost attaches an XDP program to this namespace's end, in driver mode.
func (p *Pair) AttachHost(prog *ebpf.Program) (Attachment, error) {
	return p.Host.attach(prog)
}

// AttachPeer attaches an XDP program to the measured end, in driver mode.
func (p *Pair) AttachPeer(prog *ebpf.Program) (a Attachment, err error) {
	err = p.In(func() error {
		a, err = p.Peer.attach(prog)
		return err
	})
	return a, err
}

func (e *End) attach(prog *ebpf.Program) (Attachment, error) {
	if e.pin != "" {
		return replace(e.pin, prog)
	}
	l, err := xdp.AttachXDP(xdp.XDPOptions{Program: prog, Interface: e.Index, Flags: xdp.XDPDriverMode})
	if err != nil {
		return nil, fmt.Errorf("attach XDP program to %s: %w", e.Name, err)
	}
	return l, nil
}

// PassHost gives this namespace's end the two instructions that return XDP_PASS. Without a program there, what the peer
// end sends by XDP_TX stays in the ring.
func (p *Pair) PassHost() (Attachment, error) {
	return withBare(VerdictPass, p.AttachHost)
}

// PassPeer gives the measured end the same two instructions. A veth end takes frames from the load generator only where it
// has a program (or GRO); with this one they go on to the sockets behind it.
func (p *Pair) PassPeer() (Attachment, error) {
	return withBare(VerdictPass, p.AttachPeer)
}

// DropPeer lets the measured end drop everything, which shows what a load costs by itself.
func (p *Pair) DropPeer() (Attachment, error) {
	return withBare(VerdictDrop, p.AttachPeer)
}

// withBare attaches a program that does nothing but return a verdict.
func withBare(verdict int32, attach func(*ebpf.Program) (Attachment, error)) (Attachment, error) {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "bare", Type: ebpf.XDP, AttachType: ebpf.AttachXDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()},
	})
	if err != nil {
		return nil, fmt.Errorf("load bare XDP program: %w", err)
	}
	a, err := attach(prog)
	return a, errors.Join(err, prog.Close())
}
