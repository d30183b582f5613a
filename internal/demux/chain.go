package demux

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// An Ikernel is a program that gets datagrams. Those that it leaves to the server go to the next ikernel that has the port on the same interfaces.
type Ikernel struct {
	Program *ebpf.Program
	Next    *ebpf.Map // its ln_next (bpf/chain.h)
	Order   int64     // those with a lower one come before it, and of the same one those that are attached before

	attachments []*Attachment
}

// maxChain is how many ikernels a port can have. A packet may take 33 tail calls (MAX_TAIL_CALL_CNT in the kernel): one to each ikernel, and one more to each meter.
const maxChain = 16

// A chain has the ikernels that share a port, in the order in which they get a datagram. All are on the same interfaces: an ikernel's program knows the next
// one by the port alone.
type chain []*Attachment

// slot is where the ikernel has the next program for a port.
func (k *Ikernel) slot(port uint16) uint32 { return uint32(port) % k.Next.MaxEntries() }

// others lists where else the ikernel has the same slot.
func (a *Attachment) others() (list []*Attachment) {
	slot := a.ikernel.slot(a.port())
	for _, other := range a.ikernel.attachments {
		if other != a && a.ikernel.slot(other.port()) == slot {
			list = append(list, other)
		}
	}
	return list
}

func (a *Attachment) port() uint16 { return a.ports[0].port }

// isLast says whether what the ikernel passes goes to the server.
func (a *Attachment) isLast() bool { return (*a.chain)[len(*a.chain)-1] == a }

// Shares says whether another ikernel gets what this one passes, or the other way round.
func (a *Attachment) Shares(other *Attachment) bool {
	a.demux.mu.Lock()
	defer a.demux.mu.Unlock()
	return slices.Contains(*a.chain, other)
}

// Position says as which of how many ikernels this one gets a datagram to the port.
func (a *Attachment) Position() (i, n int) {
	a.demux.mu.Lock()
	defer a.demux.mu.Unlock()
	return slices.Index(*a.chain, a) + 1, len(*a.chain)
}

// enter puts the ikernel into the chain of its port.
func (a *Attachment) enter(port uint16) error {
	if len(a.ports) == 0 {
		return errors.New("an ikernel needs an interface")
	}
	c, err := a.find()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(*c, func(other *Attachment) bool { return other.ikernel.Order > a.ikernel.Order })
	if i < 0 {
		i = len(*c)
	}
	if err := a.fits(*c, i); err != nil {
		return fmt.Errorf("share port %d: %w", port, err)
	}
	if err := a.link(*c, i); err != nil {
		return errors.Join(err, a.ikernel.forget(a.port()))
	}
	*c = slices.Insert(*c, i, a)
	a.chain = c
	a.ikernel.attachments = append(a.ikernel.attachments, a)
	for _, p := range a.ports {
		a.demux.chains[p.place] = c
	}
	return nil
}

// find finds the chain of the port on these interfaces, which has no ikernel yet where none is there.
func (a *Attachment) find() (*chain, error) {
	all := map[*chain]bool{}
	for _, p := range a.ports {
		all[a.demux.chains[p.place]] = true
	}
	for c := range all {
		if c == nil {
			continue
		}
		if there := (*c)[0].ports; len(all) > 1 || len(there) != len(a.ports) {
			return nil, fmt.Errorf("port %d has an ikernel on %s, and this one would be on %s: ikernels that share a port are on the same interfaces",
				a.port(), names(there), names(a.ports))
		}
		return c, nil
	}
	return &chain{}, nil
}

// names names the interfaces of ports.
func names(ports []*Port) string {
	var all []string
	for _, p := range ports {
		all = append(all, p.Interface)
	}
	if len(all) == 1 {
		return "interface " + all[0]
	}
	return "interfaces " + strings.Join(all, ", ")
}

// errElsewhere says that an ikernel cannot have a next one, as it would have it at another place, too.
var errElsewhere = errors.New("an ikernel that has the port on other interfaces or in another network namespace, too, must be the last: " +
	"create another one of its kind for each")

// fits says whether the ikernel can be the i-th of a chain.
func (a *Attachment) fits(c chain, i int) error {
	others := a.others()
	continues := func(other *Attachment) bool { return !other.isLast() }
	switch {
	case slices.ContainsFunc(c, func(other *Attachment) bool { return other.ikernel == a.ikernel }):
		return errors.New("the ikernel has it")
	case len(c) == maxChain:
		return fmt.Errorf("%d ikernels have it, and no more can: detach one first", len(c))
	case i > 0 && len(c[i-1].others()) > 0:
		return errElsewhere
	case len(others) > 0 && i < len(c), slices.ContainsFunc(others, continues):
		return errElsewhere
	}
	return nil
}

// link has datagrams go to the ikernel as the i-th that a chain will have. What it passes goes on at once.
func (a *Attachment) link(c chain, i int) error {
	var next *Attachment
	if i < len(c) {
		next = c[i]
		if err := a.setNext(next); err != nil {
			return err
		}
	}
	err := a.lead(c, i)
	if err != nil && i == 0 {
		err = errors.Join(err, a.unlinkFirst(next))
	}
	return err
}

// lead has what comes before the i-th ikernel of a chain hand datagrams over to this one.
func (a *Attachment) lead(c chain, i int) error {
	if i > 0 {
		return c[i-1].setNext(a)
	}
	for _, p := range a.ports {
		if err := p.on.Ikernels.Put(uint32(p.port), a.ikernel.Program); err != nil {
			return kernel.Fails("does not let a program hand packets over to an ikernel", err)
		}
	}
	return nil
}

// Replace has another program stand for an ikernel, wherever it is attached, and loses no packet. Those that the former one has it still hands on. Where it fails,
// datagrams get to the one or the other.
func (d *Demux) Replace(k *Ikernel, program *ebpf.Program) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	former := k.Program
	k.Program = program
	if err := k.lead(); err != nil {
		k.Program = former
		return errors.Join(err, k.lead())
	}
	return nil
}

// lead has datagrams get to the ikernel's program.
func (k *Ikernel) lead() error {
	var errs []error
	for _, a := range k.attachments {
		errs = append(errs, a.lead(*a.chain, slices.Index(*a.chain, a)))
	}
	return errors.Join(errs...)
}

// exit takes the ikernel out of its chain. A packet that it has at that moment still goes to the next one, before the ikernel can end.
func (a *Attachment) exit() error {
	c := a.chain
	i := slices.Index(*c, a)
	var next *Attachment
	if !a.isLast() {
		next = (*c)[i+1]
	}
	var err error
	if i > 0 {
		if err = (*c)[i-1].setNext(next); err != nil {
			err = errors.Join(err, (*c)[i-1].setNext(nil)) // rather the server than an ikernel that is gone
		}
	} else {
		err = a.unlinkFirst(next)
	}
	if next != nil {
		err = errors.Join(err, xdp.Grace(), a.setNext(nil))
	}
	*c = slices.Delete(*c, i, i+1)
	a.ikernel.attachments = slices.DeleteFunc(a.ikernel.attachments, func(other *Attachment) bool { return other == a })
	if len(*c) == 0 {
		for _, p := range a.ports {
			delete(a.demux.chains, p.place)
		}
	}
	return err
}

// unlinkFirst has datagrams go to the next ikernel instead of this one, which is the first; nil: to the server.
func (a *Attachment) unlinkFirst(next *Attachment) error {
	var errs []error
	for _, p := range a.ports {
		if next != nil {
			errs = append(errs, p.on.Ikernels.Put(uint32(p.port), next.ikernel.Program))
			continue
		}
		errs = append(errs, remove(p.on.Ikernels, uint32(p.port)))
	}
	return errors.Join(errs...)
}

// setNext has what the ikernel passes go to another one; nil: to the server.
func (a *Attachment) setNext(next *Attachment) error {
	if next == nil {
		return a.ikernel.forget(a.port())
	}
	if err := a.ikernel.Next.Put(a.ikernel.slot(a.port()), next.ikernel.Program); err != nil {
		return kernel.Fails("does not let an ikernel hand packets over to the next", err)
	}
	return nil
}

// forget has the ikernel be the last that gets datagrams to a port.
func (k *Ikernel) forget(port uint16) error { return remove(k.Next, k.slot(port)) }

// remove removes a program from a map, if there is one.
func remove(m *ebpf.Map, key uint32) error {
	if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("take an ikernel away: %w", err)
	}
	return nil
}
