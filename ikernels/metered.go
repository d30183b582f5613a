package ikernels

import (
	"errors"
	"fmt"

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
	meter *demux.Meter
}

// join has the ikernel be of a namespace, whose meter its datagrams pass from now on.
func (k *Ikernel) join(n Namespace) error {
	if k.generates() {
		return unsupported("what this ikernel sends no share or quota bounds: create it without a namespace")
	}
	spec, err := loadMeter()
	if err != nil {
		return err
	}
	if err := spec.Variables["ik_number"].Set(k.number); err != nil {
		return fmt.Errorf("number the meter of an ikernel: %w", err)
	}
	meter := demux.NewMeter(n.Number, n.Limits)
	sockets := map[string]*ebpf.Map{"ik_flows": k.host.flows, "ik_sockets": k.host.sockets}
	program, err := meter.Before(k.coll.Programs["ik_datagram"], spec, sockets)
	if err != nil {
		return err
	}
	if err := k.host.demux.Replace(&k.at, program); err != nil {
		return errors.Join(err, meter.Close())
	}
	err = k.leaveNamespace()
	k.metered = &metered{n, meter}
	return err
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
	defer h.mu.Unlock()
	var errs []error
	for k := range h.all {
		if k.metered == nil || k.metered.meter.Follows(l) {
			continue
		}
		n := k.metered.Namespace
		n.Limits = l
		if err := k.join(n); err != nil {
			errs = append(errs, fmt.Errorf("keep ikernel %s in the quotas of namespace %s: %w", k.name, n.Name, err))
		}
	}
	return errors.Join(errs...)
}

// ofNamespace describes the namespace of an ikernel and what its meter counted; "", nil: it is of none.
func (k *Ikernel) ofNamespace() (name string, counted *demux.Metered, err error) {
	if k.metered == nil {
		return "", nil, nil
	}
	c, err := k.metered.meter.Counters()
	return k.metered.Name, &c, err
}
