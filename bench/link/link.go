// Package link makes the veth pair on which everything is measured: one end in this namespace for the load, the other in
// a named namespace of its own for what is measured. docs/measuring.md says why it is set up as it is.
package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// prefix begins the name of everything this package makes; the process ID of its owner follows.
const prefix = "lnb"

// namespaces is where ip-netns(8) and package netns keep the named ones.
const namespaces = "/run/netns"

// Options of a pair. The zero value is the ordinary pair.
type Options struct {
	// Queues of each direction; 0 means one per CPU. Each CPU that sends into the pair gets a queue of its own.
	Queues int
}

// End is one end of a pair.
type End struct {
	Name  string
	Index int
	MAC   net.HardwareAddr
	Addr  netip.Addr
	pin   string // of the XDP link that somebody else attached, "" for none
}

// Pair is a veth pair.
type Pair struct {
	Host, Peer End
	Namespace  string // in which Peer lives
	ns         netns.NsHandle
	own        bool // made by New
}

var serial atomic.Uint32

// New makes a pair, both ends up, with addresses of the range for benchmarks (RFC 2544, 198.18.0.0/15) and permanent
// neighbour entries, so that no ARP disturbs a measurement. What crashed owners left behind is removed first.
func New(o Options) (*Pair, error) {
	if err := Sweep(); err != nil {
		return nil, err
	}
	if o.Queues == 0 {
		o.Queues = runtime.NumCPU()
	}
	subnet, err := freeSubnet()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), serial.Add(1)%100)
	ns, err := newNamespace(name)
	if err != nil {
		return nil, fmt.Errorf("make namespace %s: %w", name, err)
	}
	p := &Pair{
		Host:      End{Name: name + "h", Addr: subnet.Next()},
		Peer:      End{Name: name + "p", Addr: subnet.Next().Next()},
		Namespace: name, ns: ns, own: true,
	}
	if err := p.setUp(o); err != nil {
		return nil, errors.Join(fmt.Errorf("set up veth pair %s: %w", name, err), p.Close())
	}
	return p, nil
}

func (p *Pair) setUp(o Options) error {
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: p.Host.Name, NumTxQueues: o.Queues, NumRxQueues: o.Queues, TxQLen: 1000})
	veth.PeerName = p.Peer.Name
	veth.PeerNumTxQueues, veth.PeerNumRxQueues = uint32(o.Queues), uint32(o.Queues)
	if err := netlink.LinkAdd(veth); err != nil {
		return err
	}
	peer, err := netlink.LinkByName(p.Peer.Name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetNsFd(peer, int(p.ns)); err != nil {
		return fmt.Errorf("move %s into namespace %s: %w", p.Peer.Name, p.Namespace, err)
	}
	if err := p.Host.setUp(); err != nil {
		return err
	}
	// Sockets on this end hand over packets whose checksum nobody would ever finish: an XDP program answers them first.
	if err := setOffload(p.Host.Name, unix.ETHTOOL_STXCSUM, false); err != nil {
		return err
	}
	if err := p.In(p.Peer.setUp); err != nil {
		return err
	}
	far := func() error { return errors.Join(p.Peer.knows(p.Host), p.Peer.awaitCarrier()) }
	return errors.Join(p.Host.knows(p.Peer), p.Host.awaitCarrier(), p.In(far))
}

// setUp gives the end its address, sets it up, and learns what the kernel chose for it.
func (e *End) setUp() error {
	l, err := netlink.LinkByName(e.Name)
	if err != nil {
		return err
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: e.Addr.AsSlice(), Mask: net.CIDRMask(30, 32)}}
	if err := netlink.AddrAdd(l, addr); err != nil {
		return fmt.Errorf("give %s the address %s: %w", e.Name, e.Addr, err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up: %w", e.Name, err)
	}
	e.Index, e.MAC = l.Attrs().Index, l.Attrs().HardwareAddr
	return nil
}

// knows gives the end a permanent neighbour entry for the other one.
func (e *End) knows(other End) error {
	return netlink.NeighSet(&netlink.Neigh{
		LinkIndex: e.Index, IP: other.Addr.AsSlice(), HardwareAddr: other.MAC, State: netlink.NUD_PERMANENT,
	})
}

// awaitCarrier waits for the kernel's link watch: until then, what a socket sends is dropped in silence.
func (e *End) awaitCarrier() error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		l, err := netlink.LinkByIndex(e.Index)
		if err != nil {
			return err
		}
		if l.Attrs().OperState == netlink.OperUp {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s has no carrier after 10 s", e.Name)
		}
	}
}

// In runs f on a thread that is in the peer's namespace. Goroutines that f starts are not.
func (p *Pair) In(f func() error) error {
	return onThread(func() error {
		home, err := netns.Get()
		if err != nil {
			return err
		}
		defer home.Close()
		if err := netns.Set(p.ns); err != nil {
			return fmt.Errorf("enter namespace %s: %w", p.Namespace, err)
		}
		return errors.Join(f(), netns.Set(home))
	})
}

// Close removes the pair and its namespace, if they came from New.
func (p *Pair) Close() error {
	if p.ns.IsOpen() {
		defer p.ns.Close()
	}
	if !p.own {
		return nil
	}
	return errors.Join(removeLink(p.Host.Name), removeNamespace(p.Namespace))
}

// Sweep removes the pairs whose owners no longer run.
func Sweep() error {
	entries, err := os.ReadDir(namespaces)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if pid, ok := owner(e.Name()); ok && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			errs = append(errs, removeLink(e.Name()+"h"), removeLink(e.Name()+"p"), removeNamespace(e.Name()))
		}
	}
	return errors.Join(errs...)
}

// owner reads the process ID out of a name which New chose.
func owner(name string) (pid int, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	digits, _, ok := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(digits)
	return pid, ok && err == nil && pid > 1
}

func removeLink(name string) error {
	l, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove interface %s: %w", name, err)
	}
	return nil
}

func removeNamespace(name string) error {
	err := netns.DeleteNamed(name)
	if errors.Is(err, unix.EINVAL) { // a file on which nothing was mounted yet when its owner died
		err = os.Remove(filepath.Join(namespaces, name))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove namespace %s: %w", name, err)
	}
	return nil
}

// newNamespace makes a named namespace. The thread returns to where it was.
func newNamespace(name string) (ns netns.NsHandle, err error) {
	err = onThread(func() error {
		home, err := netns.Get()
		if err != nil {
			return err
		}
		defer home.Close()
		if ns, err = netns.NewNamed(name); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		return errors.Join(err, netns.Set(home))
	})
	return ns, err
}

// onThread runs f on a thread of its own. If f fails the thread ends with it, as its namespace may be the wrong one.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := f()
		if err == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// freeSubnet finds a /30 of 198.18.0.0/15 that no interface of this namespace uses.
func freeSubnet() (netip.Addr, error) {
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("list addresses: %w", err)
	}
	used := map[netip.Addr]bool{}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok {
			used[netip.PrefixFrom(ip, 30).Masked().Addr()] = true
		}
	}
	// Begin at a place of our own, so that two processes which start at once do not choose the same.
	for i := range 1 << 15 {
		n := (os.Getpid() + i) % (1 << 15) * 4
		if subnet := netip.AddrFrom4([4]byte{198, byte(18 + n>>16), byte(n >> 8), byte(n)}); !used[subnet] {
			return subnet, nil
		}
	}
	return netip.Addr{}, errors.New("all of 198.18.0.0/15 is in use: remove what uses it")
}
