// Package link makes the veth pair on which everything is measured: one end in this namespace for the load, the other in
// a named namespace of its own for what is measured. docs/measuring.md explains the set-up.
package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/veth"
)

// prefix begins the name of everything this package makes; the process ID of its owner follows.
const prefix = "lnb"

// benchmarks is the range of addresses reserved for measuring (RFC 2544).
var benchmarks = netip.MustParsePrefix("198.18.0.0/15")

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
	pin   string // of the XDP link that somebody else attached, if any
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
	subnet, err := veth.FreeSubnet(benchmarks, uint32(os.Getpid()))
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), serial.Add(1)%100)
	ns, err := veth.NewNamespace(name)
	if err != nil {
		return nil, err
	}
	p := &Pair{Namespace: name, ns: ns, own: true}
	if err := p.setUp(o, subnet); err != nil {
		return nil, errors.Join(fmt.Errorf("set up veth pair %s: %w", name, err), p.Close())
	}
	return p, nil
}

func (p *Pair) setUp(o Options, subnet int) error {
	p.Host = End{Name: p.Namespace + "h", Addr: veth.Host(benchmarks, subnet, 1).Addr()}
	p.Peer = End{Name: p.Namespace + "p", Addr: veth.Host(benchmarks, subnet, 2).Addr()}
	host, peer, err := veth.New(p.Host.side(), p.Peer.side(), p.ns, o.Queues)
	if err != nil {
		return err
	}
	queues := o.Queues
	if queues == 0 {
		queues = runtime.NumCPU()
	}
	// A server's answers get queues like those of its clients' requests.
	err = inSysfs(p.ns, func(sys string) error { return veth.OwnQueues(sys, p.Peer.Name, queues) })
	if err != nil {
		return err
	}
	p.Host.Index, p.Host.MAC = host.Index, host.MAC
	p.Peer.Index, p.Peer.MAC = peer.Index, peer.MAC
	return errors.Join(p.Host.awaitCarrier(), p.In(p.Peer.awaitCarrier))
}

func (e *End) side() veth.Side {
	return veth.Side{Name: e.Name, Addrs: []netip.Prefix{netip.PrefixFrom(e.Addr, 30)}}
}

// awaitCarrier waits for the kernel's link watch: until then, what a socket sends is silently dropped.
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

// In runs f on a thread in the peer's namespace. Goroutines that f starts are not in it.
func (p *Pair) In(f func() error) error { return veth.In(p.ns, f) }

// Close removes the pair and its namespace, if they came from New.
func (p *Pair) Close() error {
	if p.ns.IsOpen() {
		defer p.ns.Close()
	}
	if !p.own {
		return nil
	}
	return errors.Join(veth.Remove(p.Host.Name), veth.RemoveNamespace(p.Namespace))
}

// Sweep removes the pairs whose owners no longer run.
func Sweep() error {
	entries, err := os.ReadDir(veth.Namespaces)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if pid, ok := owner(e.Name()); ok && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			errs = append(errs, veth.Remove(e.Name()+"h"), veth.Remove(e.Name()+"p"), veth.RemoveNamespace(e.Name()))
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
