package nic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/compiler/metering"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// DeployFused loads one program for several lambdas (package link), in the order in which it has them as members, and puts it into
// a slot for each. All of them are new to the NIC. From there on each is a lambda like any other: it is removed by itself, and
// one that is built alone can take over where neither keeps anything.
func (n *NIC) DeployFused(_ context.Context, program []byte, members []backend.Deployment) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	revisions, err := n.loadFused(program, members)
	if err != nil {
		for _, r := range revisions {
			err = errors.Join(err, n.unload(r))
		}
		return fmt.Errorf("deploy a fused program on the NIC: %w", err)
	}
	for _, r := range revisions {
		n.workloads[r.rec.Workload] = r
		n.dispatch.send(r.entry(), r.state(), r.slot)
	}
	return nil
}

// loadFused does everything but the swap. What it returns with an error is to be unloaded.
func (n *NIC) loadFused(program []byte, members []backend.Deployment) (revisions []*revision, err error) {
	obj, err := n.objects.read(&backend.Deployment{BPF: program, Spec: sum(members)})
	if err != nil {
		return nil, err
	}
	if err := n.fillMembers(obj, members); err != nil {
		return nil, err
	}
	coll, err := ebpf.NewCollectionWithOptions(obj.spec, ebpf.CollectionOptions{
		MapReplacements: map[string]*ebpf.Map{compiler.SharedMap: n.objs.LnRequests},
	})
	if err != nil {
		return nil, verifierError(err)
	}
	defer coll.Close()
	for i := range members {
		if err := n.checkServices(&members[i]); err != nil {
			return revisions, err
		}
		r := &revision{layouts: obj.layouts}
		if r.slot, err = n.slots.take(1); err != nil {
			return revisions, fmt.Errorf("slots of the NIC: %w: remove a lambda or raise the number of slots", err)
		}
		n.loaded[r.slot] = r
		revisions = append(revisions, r)
		if err := n.reserve(&members[i], r, nil); err != nil {
			return revisions, err
		}
		own, err := share(coll)
		if err != nil {
			return revisions, err
		}
		err = n.install(own, r)
		own.Close()
		if err != nil {
			return revisions, err
		}
	}
	return revisions, nil
}

// sum is what the members may take in one program: the time of the slowest, and the memory of all.
func sum(members []backend.Deployment) (s api.Spec) {
	for i := range members {
		s.Limits.Memory += members[i].Spec.Limits.Memory
		s.Limits.Time = max(s.Limits.Time, members[i].Spec.Limits.Time)
	}
	return s
}

// fillMembers tells the program the workload IDs of its members.
func (n *NIC) fillMembers(obj object, members []backend.Deployment) error {
	ids := make([]uint32, len(members))
	for i, d := range members {
		if n.workloads[d.Workload] != nil {
			return fmt.Errorf("%w: workload %#x is served already: remove it first", ErrRefused, d.Workload)
		}
		ids[i] = d.Workload
	}
	v := obj.spec.Variables[link.MembersVariable]
	if v == nil || int(v.Size()) != 4*len(ids) {
		return fmt.Errorf("%w: it is not a fused program of %d lambdas", ErrRefused, len(ids))
	}
	if err := v.Set(ids); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := metering.Fill(obj.spec, time.Duration(sum(members).Limits.Time)); err != nil {
		return fmt.Errorf("%w: limits.time: %w", ErrRefused, err)
	}
	return nil
}

// share duplicates what one revision has of a collection. The kernel has one of each.
func share(coll *ebpf.Collection) (_ *ebpf.Collection, err error) {
	own := &ebpf.Collection{Programs: map[string]*ebpf.Program{}, Maps: map[string]*ebpf.Map{}}
	for name, p := range coll.Programs {
		if own.Programs[name], err = p.Clone(); err != nil {
			own.Close()
			return nil, fmt.Errorf("share program %s: %w", name, err)
		}
	}
	for name, m := range coll.Maps {
		if own.Maps[name], err = m.Clone(); err != nil {
			own.Close()
			return nil, fmt.Errorf("share map %s: %w", name, err)
		}
	}
	return own, nil
}
