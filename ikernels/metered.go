package ikernels

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// A Namespace is one in whose share and quotas an ikernel is kept.
type Namespace struct {
	Name   string
	Number uint32
	Limits *limits.Limits // by which it goes
}

// A metered ikernel is of a namespace.
type metered struct {
	Namespace
	meter   *demux.Meter
	program *ebpf.Program // of the meter
}

// join has the ikernel be of a namespace, whose meter its datagrams pass from now on.
func (k *Ikernel) join(n Namespace) error {
	if k.generates() {
		return unsupported("what this ikernel sends no share or quota bounds: create it without a namespace")
	}
	m, err := k.newMeter(k.coll.Programs["ik_datagram"], n)
	if err != nil {
		return err
	}
	return k.pass(m)
}

// newMeter makes a meter that hands datagrams over to the ikernel's program.
func (k *Ikernel) newMeter(ikernel *ebpf.Program, n Namespace) (*metered, error) {
	spec, err := loadMeter()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables["ik_number"].Set(k.number); err != nil {
		return nil, fmt.Errorf("number the meter of an ikernel: %w", err)
	}
	meter := demux.NewMeter(n.Number, n.Limits)
	program, err := meter.Before(ikernel, spec, map[string]*ebpf.Map{"ik_flows": k.host.flows, "ik_sockets": k.host.sockets})
	if err != nil {
		return nil, err
	}
	return &metered{n, meter, program}, nil
}

// pass has the ikernel's datagrams pass this meter from now on.
func (k *Ikernel) pass(m *metered) error {
	if err := k.host.demux.Replace(&k.at, m.program); err != nil {
		return errors.Join(err, m.meter.Close())
	}
	k.metered = m
	return nil
}

// leaveNamespace ends the ikernel's meter, if it has one, when no datagram passes it any more.
func (k *Ikernel) leaveNamespace() error {
	if k.metered == nil {
		return nil
	}
	return errors.Join(xdp.Grace(), k.metered.meter.Close())
}

// Follow has all ikernels that are of namespaces go by these limits, which are those of a NIC that was made anew. What their meters counted is lost.
func (h *Host) Follow(l *limits.Limits) error {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.all))
	h.mu.Unlock()
	var errs []error
	var former []*demux.Meter
	for _, k := range all {
		m, err := k.follow(l)
		if err != nil {
			errs = append(errs, fmt.Errorf("keep ikernel %s in the quotas of its namespace: %w", k.name, err))
		}
		if m != nil {
			former = append(former, m)
		}
	}
	if former != nil {
		errs = append(errs, xdp.Grace()) // one for all of them
	}
	for _, m := range former {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// follow has the ikernel go by these limits. It returns the meter that it had, which datagrams may still pass; nil: it has no other one than before.
func (k *Ikernel) follow(l *limits.Limits) (*demux.Meter, error) {
	was, ikernel, err := k.behind(l)
	if was == nil || err != nil {
		return nil, err
	}
	defer ikernel.Close()
	n := was.Namespace
	n.Limits = l
	m, err := k.newMeter(ikernel, n) // which takes long: nobody waits for it
	if err != nil {
		return nil, err
	}
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	if !k.host.all[k] || k.metered != was { // it ended meanwhile, or followed
		return nil, m.meter.Close()
	}
	if err := k.pass(m); err != nil {
		return nil, err
	}
	return was.meter, nil
}

// behind returns how the ikernel is metered if that is by other limits, and its program, which outlasts it until it is closed.
func (k *Ikernel) behind(l *limits.Limits) (*metered, *ebpf.Program, error) {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	if !k.host.all[k] || k.metered == nil || k.metered.meter.Follows(l) {
		return nil, nil, nil
	}
	ikernel, err := k.coll.Programs["ik_datagram"].Clone()
	return k.metered, ikernel, err
}

// ofNamespace describes the namespace of an ikernel and what its meter counted; "", nil: it is of none.
func (k *Ikernel) ofNamespace() (name string, counted *demux.Metered, err error) {
	if k.metered == nil {
		return "", nil, nil
	}
	c, err := k.metered.meter.Counters()
	return k.metered.Name, &c, err
}
