package link

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	ebpflink "github.com/cilium/ebpf/link"

	"github.com/lambdanic/lambdanic/internal/xdp"
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
	l, err := ebpflink.AttachXDP(ebpflink.XDPOptions{Program: prog, Interface: e.Index, Flags: ebpflink.XDPDriverMode})
	if err != nil {
		return nil, fmt.Errorf("attach XDP program to %s: %w", e.Name, err)
	}
	return l, nil
}

// PassHost gives this namespace's end the two instructions that return XDP_PASS. Without a program there, what the peer
// end sends by XDP_TX stays in the ring.
func (p *Pair) PassHost() (Attachment, error) {
	return withBare(xdp.Pass, p.AttachHost)
}

// PassPeer gives the measured end the same two instructions. A veth end takes frames from the load generator only where it
// has a program (or GRO); with this one they go on to the sockets behind it.
func (p *Pair) PassPeer() (Attachment, error) {
	return withBare(xdp.Pass, p.AttachPeer)
}

// DropPeer lets the measured end drop everything, which shows what a load costs by itself.
func (p *Pair) DropPeer() (Attachment, error) {
	return withBare(xdp.Drop, p.AttachPeer)
}

// withBare attaches a program that does nothing but return a verdict.
func withBare(verdict int32, attach func(*ebpf.Program) (Attachment, error)) (Attachment, error) {
	prog, err := xdp.Verdict(verdict)
	if err != nil {
		return nil, err
	}
	a, err := attach(prog)
	return a, errors.Join(err, prog.Close())
}
