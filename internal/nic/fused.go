package nic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/load"
)

// A fused program takes a slot for each of its members, so that each is a lambda like any other: it has counters, records and a
// revision of its own, and is superseded, removed and adopted by itself. The kernel frees the program with its last slot.

// DeployFused loads one program for several lambdas (package link), and swaps all of them in or none.
func (n *NIC) DeployFused(ctx context.Context, f backend.Fused) error {
	p, err := n.PrepareFused(ctx, f)
	if err != nil {
		return err
	}
	p.Swap()
	return nil
}

// PrepareFused is DeployFused without the swap. Until Swap or Drop, no other change of the NIC begins.
func (n *NIC) PrepareFused(_ context.Context, f backend.Fused) (backend.Prepared, error) {
	n.changing.Lock()
	kept := false // Swap or Drop unlocks
	defer func() {
		if !kept {
			n.changing.Unlock()
		}
	}()
	p := &prepared{n: n, what: "deploy a fused program on the NIC"}
	var err error
	if p.next, err = n.loadFused(&f); err != nil {
		return nil, fmt.Errorf("%s: %w", p.what, errors.Join(err, n.unloadAll(p.next)))
	}
	kept = true
	return p, nil
}

// fusedProgram is a fused program that is being loaded.
type fusedProgram struct {
	obj  objectFile
	old  map[string]*ebpf.Map               // kept objects that are taken over, by section
	coll map[time.Duration]*ebpf.Collection // by the members' limits.time; 0: the program needs no fuel
}

func (p *fusedProgram) close() {
	for _, c := range p.coll {
		c.Close()
	}
}

// loadFused does everything but the swap. The caller unloads what it returns with an error.
func (n *NIC) loadFused(f *backend.Fused) (next []succession, err error) {
	obj, err := n.objectFiles.read(&backend.Deployment{BPF: f.BPF, Spec: f.Spec})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(fit(obj.spec), fillMembers(obj.spec, f.Members)); err != nil {
		return nil, err
	}
	p := &fusedProgram{obj: obj, old: map[string]*ebpf.Map{compiler.SharedMap: n.prog.LnRequests}, coll: map[time.Duration]*ebpf.Collection{}}
	defer p.close()
	var members []string
	for i := range f.Serving {
		d := &f.Serving[i]
		old := n.revision(d.Workload)
		if old != nil && old.Record.Revision == d.Revision {
			continue
		}
		at := slices.IndexFunc(f.Members, func(m backend.FusedMember) bool { return m.Workload == d.Workload })
		if at < 0 {
			return next, fmt.Errorf("%w: %s is not a member of the program", load.ErrRefused, d.Name)
		}
		if err := n.check(d, obj.spec, old); err != nil {
			return next, fmt.Errorf("%s: %w", d.Name, err)
		}
		r := &revision{layouts: obj.members[f.Members[at].Name]}
		if err := p.takeOver(f.Members[at].Name, r, old); err != nil {
			return next, fmt.Errorf("%s: %w", d.Name, err)
		}
		next, members = append(next, succession{r, old}), append(members, f.Members[at].Name)
		if err := n.takeSlot(d, obj.spec, r, old); err != nil {
			return next, fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	for i, s := range next {
		if err := n.installMember(p, members[i], timeOf(f.Serving, s.r.Record.Workload), s.r); err != nil {
			return next, err
		}
	}
	return next, nil
}

func timeOf(list []backend.Deployment, workload uint32) time.Duration {
	i := slices.IndexFunc(list, func(d backend.Deployment) bool { return d.Workload == workload })
	return time.Duration(list[i].Spec.Limits.Time)
}

// takeOver notes the kept objects of the revision before that replace a member's own.
func (p *fusedProgram) takeOver(member string, r, old *revision) error {
	if old == nil {
		return nil
	}
	h, err := backend.HandOver(old.layouts, r.layouts)
	if err != nil {
		return err
	}
	if h.Keep {
		p.old[compiler.KeptSectionOf(member)] = old.kept
	}
	return nil
}

func (n *NIC) installMember(p *fusedProgram, member string, limit time.Duration, r *revision) error {
	coll, err := p.load(limit)
	if err != nil {
		return err
	}
	if err := p.obj.checkTime(coll, limit); err != nil {
		return err
	}
	own, err := share(coll, member)
	if err != nil {
		return err
	}
	defer own.Close()
	return n.install(own, r)
}

// load returns the program with the fuel for a member's time. The program is loaded once for each different time: the copies share all
// maps except the fuel's.
func (p *fusedProgram) load(limit time.Duration) (*ebpf.Collection, error) {
	if p.obj.spec.Maps[metering.FuelMap] == nil {
		limit = 0
	}
	if coll := p.coll[limit]; coll != nil {
		return coll, nil
	}
	spec := p.obj.spec.Copy()
	if err := metering.Fill(spec, limit); err != nil {
		return nil, fmt.Errorf("%w: limits.time: %w", load.ErrRefused, err)
	}
	replace := maps.Clone(p.old)
	for _, other := range p.coll {
		maps.Copy(replace, other.Maps)
		delete(replace, metering.FuelMap)
	}
	coll, err := load.Collection(spec, replace)
	if err != nil {
		return nil, err
	}
	p.coll[limit] = coll
	return coll, nil
}

// fillMembers tells the program the workload IDs of its members.
func fillMembers(spec *ebpf.CollectionSpec, members []backend.FusedMember) error {
	var ids []uint32
	for _, m := range members {
		ids = append(ids, m.Workload)
	}
	v := spec.Variables[link.MembersVariable]
	if v == nil || int(v.Size()) != 4*len(ids) {
		return fmt.Errorf("%w: it is not a fused program of %d lambdas", load.ErrRefused, len(ids))
	}
	if err := v.Set(ids); err != nil {
		return fmt.Errorf("%w: %w", load.ErrRefused, err)
	}
	return nil
}

// share duplicates one member's handles in a collection: the program, and what the member keeps. The kernel has one of each.
func share(coll *ebpf.Collection, member string) (_ *ebpf.Collection, err error) {
	own := &ebpf.Collection{Programs: map[string]*ebpf.Program{}, Maps: map[string]*ebpf.Map{}}
	if own.Programs[compiler.Program], err = coll.Programs[compiler.Program].Clone(); err != nil {
		return nil, fmt.Errorf("share the program: %w", err)
	}
	if kept := coll.Maps[compiler.KeptSectionOf(member)]; kept != nil {
		if own.Maps[compiler.KeptSection], err = kept.Clone(); err != nil {
			own.Close()
			return nil, fmt.Errorf("share what %s keeps: %w", member, err)
		}
	}
	return own, nil
}
