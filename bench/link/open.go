package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	xdp "github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Existing names the ends of a pair that somebody else made: a virtual NIC.
type Existing struct {
	Host      string // this namespace's end
	Peer      string // the measured end
	Namespace string // a named one, where Peer lives
	// HostLink and PeerLink are where the XDP links of the two ends are pinned. What AttachHost and AttachPeer attach
	// replaces the program there atomically, and Close of the attachment puts
	// the program back.
	HostLink, PeerLink string
}

// Open takes hold of a pair that exists. Its Close leaves the pair as it is.
func Open(e Existing) (*Pair, error) {
	ns, err := netns.GetFromName(e.Namespace)
	if err != nil {
		return nil, fmt.Errorf("find namespace %s: %w", e.Namespace, err)
	}
	p := &Pair{Host: End{Name: e.Host, pin: e.HostLink}, Peer: End{Name: e.Peer, pin: e.PeerLink}, Namespace: e.Namespace, ns: ns}
	if err := errors.Join(p.Host.learn(), p.In(p.Peer.learn)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// learn fills in the properties of the interface of that name.
func (e *End) learn() error {
	l, err := netlink.LinkByName(e.Name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", e.Name, err)
	}
	e.Index, e.MAC = l.Attrs().Index, l.Attrs().HardwareAddr
	addrs, err := netlink.AddrList(l, netlink.FAMILY_V4)
	if err != nil || len(addrs) == 0 {
		return errors.Join(fmt.Errorf("%s has no IPv4 address, which the generator needs", e.Name), err)
	}
	e.Addr, _ = netip.AddrFromSlice(addrs[0].IP.To4())
	return nil
}

// replacement is a program that stands in for another one in a pinned link.
type replacement struct {
	link xdp.Link
	was  *ebpf.Program
}

func replace(pin string, prog *ebpf.Program) (*replacement, error) {
	l, err := xdp.LoadPinnedLink(pin, nil)
	if err != nil {
		return nil, fmt.Errorf("open pinned link %s: %w", pin, err)
	}
	info, err := l.Info()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read link %s: %w", pin, err), l.Close())
	}
	was, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find the program of %s: %w", pin, err), l.Close())
	}
	if err := l.Update(prog); err != nil {
		return nil, errors.Join(fmt.Errorf("replace the program of %s: %w", pin, err), was.Close(), l.Close())
	}
	return &replacement{l, was}, nil
}

func (r *replacement) Close() error {
	return errors.Join(r.link.Update(r.was), r.was.Close(), r.link.Close())
}
