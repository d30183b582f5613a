package nic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/nic/load"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// revision is one loaded revision of a lambda.
type revision struct {
	module.Revision
	prog     *ebpf.Program
	migrate  *ebpf.Program // the migration, before it has run; nil: none
	kept     *ebpf.Map     // nil if it keeps nothing
	migrated *ebpf.Map     // nil if nothing of it is migrated
	layouts  api.Layouts   // of kept and migrated
	served   bool          // packets may have met it
}

func (r *revision) close() error {
	var errs []error
	for _, p := range []*ebpf.Program{r.prog, r.migrate} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	for _, m := range []*ebpf.Map{r.kept, r.migrated} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}

// A stateMap is a map that the next revision takes over. Each kind is pinned in a directory of its own, under slot and layout.
type stateMap struct {
	dir     string
	section string
	pinned  **ebpf.Map
	layout  *string
}

func (r *revision) stateMaps() []stateMap {
	return []stateMap{
		{"kept", compiler.KeptSection, &r.kept, &r.layouts.Kept},
		{"migrated", compiler.MigratedSection, &r.migrated, &r.layouts.Migrated},
	}
}

// entry is the index of the dispatch word that points to the revision. A match stage, which sees the packets that no workload ID
// selects, has entry 0, which no workload has.
func (r *revision) entry() uint32 {
	if r.IsStage() {
		return 0
	}
	return r.Record.Workload
}

func (r *revision) state() program.State {
	if r.IsStage() {
		return program.RootLnStateLN_STATE_STAGE
	}
	return program.RootLnStateLN_STATE_SLOT
}

// Deploy loads a revision and swaps it in. Until the swap, which is one store, the revision before serves every request.
// After the swap, messages in assembly and calls in flight still end with the revision that began them. An error leaves everything
// as it was. Deploying the revision that runs already does nothing.
func (n *NIC) Deploy(ctx context.Context, d backend.Deployment) error {
	p, err := n.Prepare(ctx, d)
	if err != nil {
		return err
	}
	if err := p.Migrate(); err != nil {
		return errors.Join(err, p.Drop())
	}
	p.Swap()
	return nil
}

// prepared are revisions that are loaded and do not serve yet. Meanwhile nobody else changes what is loaded on the NIC.
type prepared struct {
	n    *NIC
	what string
	next []succession // without those that run already
}

// A succession is a revision and the one that it supersedes, nil for the first.
type succession struct{ r, old *revision }

// change is a deployment as modules see it. r is nil before the revision exists; old is nil for the first.
func change(d *backend.Deployment, object *ebpf.CollectionSpec, r, old *revision) *module.Change {
	c := &module.Change{Deployment: d, Object: object}
	if r != nil {
		c.Next = &r.Revision
	}
	if old != nil {
		c.Previous = &old.Revision
	}
	return c
}

// check has all modules look at a deployment.
func (n *NIC) check(d *backend.Deployment, object *ebpf.CollectionSpec, old *revision) error {
	return n.modules.each(func(m module.Module) error { return m.Check(change(d, object, nil, old)) })
}

// Prepare is Deploy up to the migration. Until Swap or Drop, no other change of the NIC begins.
func (n *NIC) Prepare(ctx context.Context, d backend.Deployment) (backend.Prepared, error) {
	n.changing.Lock()
	kept := false // Swap or Drop unlocks
	defer func() {
		if !kept {
			n.changing.Unlock()
		}
	}()
	p := &prepared{n: n, what: fmt.Sprintf("deploy %s revision %d on the NIC", d.Name, d.Revision)}
	old := n.revision(d.Workload)
	if old != nil && old.Record.Revision == d.Revision {
		kept = true
		return p, nil
	}
	r, err := n.load(&d, old)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.what, err)
	}
	p.next = []succession{{r, old}}
	for _, m := range n.modules {
		if err := m.Prepare(ctx, change(&d, nil, r, old)); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", p.what, err), p.drop())
		}
	}
	kept = true
	return p, nil
}

// Migrate runs the lambdas' migrations, where there are any to run.
func (p *prepared) Migrate() error {
	for _, s := range p.next {
		if s.r.migrate == nil {
			continue
		}
		if err := s.r.runMigration(); err != nil {
			return fmt.Errorf("%s: %w", p.what, err)
		}
		p.n.cfg.reached("migrated")
		if err := s.r.migrate.Close(); err != nil {
			return err
		}
		s.r.migrate = nil
	}
	return nil
}

// runMigration runs on no packet. It reads the old revision's own map, which that revision goes on changing meanwhile.
func (r *revision) runMigration() error {
	verdict, err := r.migrate.Run(&ebpf.RunOptions{Data: make([]byte, 64)})
	if err != nil {
		return fmt.Errorf("migrate its object: %w", err)
	}
	if verdict != 0 { // from a guard or a fuel charge that the compiler inserted
		return fmt.Errorf("%w: its LAMBDA_MIGRATE() accessed memory that is not the lambda's, or did not end in time", load.ErrRefused)
	}
	return nil
}

func (p *prepared) Swap() {
	defer p.n.changing.Unlock()
	p.n.send(p.next)
	var serve []*module.Revision
	for _, s := range p.next {
		serve = append(serve, &s.r.Revision)
	}
	if err := p.n.modules.each(func(m module.Module) error { return m.Swapped(serve) }); err != nil {
		p.n.cfg.Log.Error("the NIC lacks something after a swap", "error", err)
	}
	for _, s := range p.next {
		if err := p.n.bound(s.r); err != nil {
			p.n.cfg.Log.Error("bound the superseded revisions", "slot", s.r.Slot, "error", err)
		}
		if s.old != nil {
			p.n.drain(s.old)
		}
	}
}

// send directs requests to the next revisions.
func (n *NIC) send(next []succession) {
	n.mu.Lock()
	defer n.mu.Unlock()
	serving := map[uint32]*revision{}
	for _, s := range next {
		serving[s.r.Record.Workload] = s.r
		s.r.served = true
	}
	n.serve(serving)
	for _, s := range next {
		n.dispatch.send(s.r.entry(), s.r.state(), s.r.Slot)
		n.cfg.reached("swapped")
	}
}

func (p *prepared) Drop() error {
	defer p.n.changing.Unlock()
	return p.drop()
}

func (p *prepared) drop() error {
	return errors.Join(p.n.unloadAll(p.next), p.n.modules.each(module.Module.Dropped))
}

func (n *NIC) unloadAll(list []succession) error {
	var errs []error
	for _, s := range list {
		errs = append(errs, n.unload(s.r))
	}
	return errors.Join(errs...)
}

// fit adapts an object file to the machine and its kernel.
func fit(spec *ebpf.CollectionSpec) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the CPUs: %w", err)
	}
	if _, err := compiler.Fit(spec, cpus); err != nil {
		return fmt.Errorf("%w: %w", load.ErrRefused, err)
	}
	kernel.Fit(spec)
	return nil
}

// load does everything for a revision except the migration and the swap.
func (n *NIC) load(d *backend.Deployment, old *revision) (r *revision, err error) {
	obj, err := n.objectFiles.read(d)
	if err != nil {
		return nil, err
	}
	if err := fit(obj.spec); err != nil {
		return nil, err
	}
	if err := metering.Fill(obj.spec, time.Duration(d.Spec.Limits.Time)); err != nil {
		return nil, fmt.Errorf("%w: limits.time: %w", load.ErrRefused, err)
	}
	if err := n.check(d, obj.spec, old); err != nil {
		return nil, err
	}
	var h backend.Handover
	if old != nil {
		if h, err = backend.HandOver(old.layouts, obj.layouts); err != nil {
			return nil, err
		}
	}
	r = &revision{layouts: obj.layouts}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.unload(r))
		}
	}()
	if err := n.takeSlot(d, obj.spec, r, old); err != nil {
		return r, err
	}
	replace := obj.takeOver(h, old)
	n.share(obj.spec, replace)
	return r, n.loadProgram(obj, time.Duration(d.Spec.Limits.Time), r, replace)
}

// share replaces maps of an object file by the NIC's.
func (n *NIC) share(object *ebpf.CollectionSpec, replace map[string]*ebpf.Map) {
	if object.Maps[compiler.SharedMap] != nil { // a match stage has none: it works on the packet alone
		replace[compiler.SharedMap] = n.prog.LnRequests
	}
	for _, m := range n.modules {
		maps.Copy(replace, m.Shared(object))
	}
}

// takeSlot gives the revision a slot, and has the modules give it their records.
func (n *NIC) takeSlot(d *backend.Deployment, object *ebpf.CollectionSpec, r, old *revision) (err error) {
	if r.Slot, err = n.slots.Take(1); err != nil {
		return fmt.Errorf("slots of the NIC: %w: remove a lambda or raise the number of slots", err)
	}
	n.loaded[r.Slot] = r
	r.Record = program.Slot{
		Workload: d.Workload, Revision: d.Revision, Mode: uint32(modes[d.Spec.Message.Mode]), NamespaceId: d.NamespaceID,
	}
	if old != nil {
		r.Record.Prev = old.Slot
	}
	for _, m := range n.modules {
		if err := m.Take(change(d, object, r, old)); err != nil {
			return err
		}
	}
	if err := zeroStats(n.prog.LnSlotStats, r.Slot); err != nil {
		return err
	}
	if err := putOnCPUs(n.prog.LnCosts, r.Slot, program.Cost{}); err != nil {
		return fmt.Errorf("clear the cost of slot %d: %w", r.Slot, err)
	}
	n.accounts.open(&r.Revision)
	defer n.cfg.reached("records reserved")
	return n.prog.LnSlots.Put(r.Slot, &r.Record)
}

var modes = map[api.MessageMode]program.Mode{
	api.ModePacket: program.RootLnModeLN_MODE_PACKET, api.ModeStream: program.RootLnModeLN_MODE_STREAM, api.ModeAssemble: program.RootLnModeLN_MODE_ASSEMBLE,
}

func (n *NIC) loadProgram(obj objectFile, limit time.Duration, r *revision, replace map[string]*ebpf.Map) error {
	coll, err := load.Collection(obj.spec, replace)
	if err != nil {
		return err
	}
	defer coll.Close()
	if err := obj.checkTime(coll, limit); err != nil {
		return err
	}
	return n.install(coll, r)
}

// install pins the loaded program and state, and puts the program into the revision's slot.
func (n *NIC) install(coll *ebpf.Collection, r *revision) error {
	r.prog, r.migrate = coll.DetachProgram(compiler.Program), coll.DetachProgram(compiler.MigrateProgram)
	for _, s := range r.stateMaps() {
		if *s.layout == "" {
			continue
		}
		*s.pinned = coll.DetachMap(s.section)
		if err := load.Pin(*s.pinned, n.statePin(r.Slot, s)); err != nil {
			return err
		}
		n.cfg.reached(s.dir + " objects pinned")
	}
	if err := load.Pin(r.prog, n.progPin(r.Slot)); err != nil {
		return err
	}
	n.cfg.reached("program pinned")
	if err := n.prog.LnPrograms.Put(r.Slot, uint32(r.prog.FD())); err != nil {
		return fmt.Errorf("put the program into slot %d: %w", r.Slot, err)
	}
	n.cfg.reached("program in its slot")
	return nil
}

func (n *NIC) progPin(slot uint32) string {
	return filepath.Join(n.cfg.pins(), "slots", strconv.Itoa(int(slot)))
}

func (n *NIC) statePin(slot uint32, s stateMap) string {
	return filepath.Join(n.cfg.pins(), s.dir, fmt.Sprintf("%d-%s", slot, *s.layout))
}

// Remove takes a lambda out. From now on its workload is unknown.
func (n *NIC) Remove(_ context.Context, workload uint32) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	r := n.revision(workload)
	if r == nil {
		return nil
	}
	err := n.forget(r)
	n.drain(r)
	return err
}

// forget makes the revision's workload unknown.
func (n *NIC) forget(r *revision) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dispatch.forget(r.entry())
	n.cfg.reached("workload forgotten")
	workload := r.Record.Workload
	err := n.modules.each(func(m module.Module) error { return m.Removed(workload) })
	n.serve(map[uint32]*revision{workload: nil})
	return err
}

// Endpoint says where requests for a workload go. It never waits.
func (n *NIC) Endpoint(workload uint32) (netip.AddrPort, bool) {
	return n.Addr(), n.revision(workload) != nil
}
