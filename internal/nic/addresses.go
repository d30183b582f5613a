package nic

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/internal/mapped"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// maxAddresses is how many addresses one NIC answers at.
const maxAddresses = int(program.RootLnLimitLN_MAX_ADDRESSES)

// find fills in r the addresses of a real interface, and those in more. An address that r already has stays the first of its
// family as long as the interface has it: clients know it.
func find(r *module.Reach, l netlink.Link, more []netip.Addr) error {
	found, err := veth.Addresses(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the addresses of %s: %w", l.Attrs().Name, err)
	}
	var all []netip.Addr
	var first4, first6 netip.Addr
	for _, a := range found {
		ip, _ := netip.AddrFromSlice(a.IP)
		ip = ip.Unmap()
		all = append(all, ip)
		switch {
		case ip.Is4() && (!first4.IsValid() || ip == r.Addr):
			first4 = ip
		case ip.Is6() && !ip.IsLinkLocalUnicast() && (!first6.IsValid() || ip == r.Addr6):
			first6 = ip
		}
	}
	if !first4.IsValid() && !first6.IsValid() {
		return fmt.Errorf("interface %s has no address: give it one with `ip addr add`", l.Attrs().Name)
	}
	*r = module.Reach{Addr: first4, Addr6: first6, HostAddr: first4}
	for _, ip := range slices.Concat(all, more) {
		if !slices.Contains(r.Addrs, ip) {
			r.Addrs = append(r.Addrs, ip)
		}
	}
	return nil
}

// ownAddresses is the NIC program's table of its addresses, in our memory.
type ownAddresses struct {
	mapped []program.Addresses // one
	table  *program.Addresses
}

func mapAddresses(m *ebpf.Map) (*ownAddresses, error) {
	table, err := mapped.Array[program.Addresses](m)
	if err != nil {
		return nil, err
	}
	return &ownAddresses{table, &table[0]}, nil
}

func (o *ownAddresses) close() error {
	table := o.mapped
	o.mapped, o.table = nil, nil
	return mapped.Unmap(table)
}

// set writes r's addresses to the table. Packets come meanwhile: an address that stays is in the table at every moment.
func (o *ownAddresses) set(r *module.Reach) {
	t, count := o.table, o.table.Count
	var want [][2]uint64
	for _, a := range r.Addrs {
		want = append(want, xdp.Words(a))
	}
	for i := uint32(0); i < count; {
		if slices.Contains(want, t.All[i]) {
			i++
			continue
		}
		count--
		store(&t.All[i], t.All[count])
		atomic.StoreUint32(&t.Count, count)
	}
	for _, w := range want {
		if !slices.Contains(t.All[:count], w) {
			store(&t.All[count], w)
			count++
			atomic.StoreUint32(&t.Count, count)
		}
	}
	own4 := xdp.Words(r.Addr)
	atomic.StoreUint32(&t.Own4, uint32(own4[0])) // little-endian: the first four bytes
	store(&t.Own6, xdp.Words(r.Addr6))
}

func store(at *[2]uint64, w [2]uint64) {
	atomic.StoreUint64(&at[0], w[0])
	atomic.StoreUint64(&at[1], w[1])
}

// addressPause is the pause before a real interface's addresses are watched again, after the kernel ended a subscription.
const addressPause = time.Second

// keepAddresses follows the addresses of a real interface, which change while the NIC runs.
func (n *NIC) keepAddresses() {
	if n.rec.Namespace != "" {
		return
	}
	n.drains.Go(func() {
		for {
			err := n.followAddresses()
			if err == nil {
				return
			}
			n.cfg.Log.Warn("watching the interface's addresses again", "interface", n.rec.Interface, "because", err)
			select {
			case <-n.closing:
				return
			case <-time.After(addressPause):
			}
		}
	})
}

// followAddresses ends without an error when the NIC is closed.
func (n *NIC) followAddresses() error {
	var why atomic.Pointer[error]
	changes, done := make(chan netlink.AddrUpdate), make(chan struct{})
	err := netlink.AddrSubscribeWithOptions(changes, done, netlink.AddrSubscribeOptions{ErrorCallback: func(err error) { why.Store(&err) }})
	if err != nil {
		return fmt.Errorf("subscribe to addresses: %w", err)
	}
	defer func() {
		close(done)
		for range changes { // until the subscription has ended
		}
	}()
	for {
		n.takeAddresses() // also changes before the subscription
		select {
		case <-n.closing:
			return nil
		case _, ok := <-changes:
			if ok {
				continue
			}
			if err := why.Load(); err != nil {
				return *err
			}
			return errors.New("the subscription ended")
		}
	}
}

// takeAddresses tells the NIC program the interface's addresses. If the interface has none, the program keeps its addresses.
func (n *NIC) takeAddresses() {
	l, err := netlink.LinkByIndex(n.rec.Index)
	if err != nil {
		return // Attached reports it
	}
	was := n.reach.Load()
	is := *was
	if err := find(&is, l, n.cfg.Addresses); err != nil {
		n.cfg.Log.Warn("the NIC keeps its addresses", "addresses", was.Addrs, "because", err)
		return
	}
	if len(is.Addrs) > maxAddresses {
		n.cfg.Log.Warn("a NIC cannot have so many addresses: it goes without the last", "interface", n.rec.Interface, "last", is.Addrs[maxAddresses:])
		is.Addrs = is.Addrs[:maxAddresses]
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.own.set(&is) // an earlier daemon may have written addresses that are not the record's
	n.reach.Store(&is)
	if is.Addr == was.Addr && is.Addr6 == was.Addr6 && slices.Equal(is.Addrs, was.Addrs) {
		return
	}
	n.cfg.Log.Info("the interface's addresses changed", "interface", n.rec.Interface, "addresses", is.Addrs)
}

// linkOf finds an interface that can be a NIC.
func linkOf(name string) (netlink.Link, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s does not exist: see `ip link` for those that do", name)
	}
	if l.Attrs().Flags&net.FlagLoopback != 0 {
		return nil, fmt.Errorf("interface %s is the loopback, which no other machine reaches: name another, or leave it out for a virtual NIC", name)
	}
	return l, nil
}
