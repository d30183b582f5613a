package nic

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/kernel"
)

// revision is one loaded revision of a lambda.
type revision struct {
	slot     uint32
	rec      rootLnSlot
	prog     *ebpf.Program
	migrate  *ebpf.Program // to be run before it serves; nil if nothing is
	clones   bool          // a match stage that may clone its packets
	kept     *ebpf.Map     // nil if it keeps nothing
	migrated *ebpf.Map     // nil if nothing of it is migrated
	layouts  api.Layouts   // of these
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

// A part of a revision's state lives in a map that the next one takes over. It is pinned in a directory of its own, under slot
// and layout.
type part struct {
	dir     string
	section string
	objects **ebpf.Map
	layout  *string
}

func (r *revision) parts() []part {
	return []part{
		{"kept", compiler.KeptSection, &r.kept, &r.layouts.Kept},
		{"migrated", compiler.MigratedSection, &r.migrated, &r.layouts.Migrated},
	}
}

// entry is the place of the dispatch word that points to the revision. A match stage has entry 0, which is no workload's: it
// sees the packets that no workload ID selects.
func (r *revision) entry() uint32 {
	if r.isStage() {
		return 0
	}
	return r.rec.Workload
}

func (r *revision) state() rootLnState {
	if r.isStage() {
		return rootLnStateLN_STATE_STAGE
	}
	return rootLnStateLN_STATE_SLOT
}

func (r *revision) isStage() bool { return r.rec.Mode == uint32(rootLnModeLN_MODE_STAGE) }

// Deploy loads a revision and swaps it in. Until the swap, which is one store, the revision before it serves every request;
// after it, messages in assembly and calls in flight still end with the revision that began them. An error leaves all as
// it was. Deploying the revision that runs already does nothing.
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

// prepared are revisions that are loaded and do not serve yet. Nobody else changes what is loaded on their NIC.
type prepared struct {
	n    *NIC
	what string
	next []succession // without those that run already
	card *onCard      // of next's only one; nil where the card is to have nothing of it
}

// A succession is a revision, and the one that it supersedes, nil for the first.
type succession struct{ r, old *revision }

// Prepare is the part of Deploy that is before the migration. Until Swap or Drop, no other change of the NIC begins.
func (n *NIC) Prepare(ctx context.Context, d backend.Deployment) (backend.Prepared, error) {
	n.changing.Lock()
	kept := false // for who commits what is prepared, or drops it
	defer func() {
		if !kept {
			n.changing.Unlock()
		}
	}()
	p := &prepared{n: n, what: fmt.Sprintf("deploy %s revision %d on the NIC", d.Name, d.Revision)}
	old := n.revision(d.Workload)
	if old != nil && old.rec.Revision == d.Revision {
		kept = true
		return p, nil
	}
	r, err := n.load(&d, old)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.what, err)
	}
	p.next = []succession{{r, old}}
	if p.card, err = n.prepareCard(ctx, &d); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.what, err), n.unloadAll(p.next), p.card.close())
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

// runMigration runs on no packet at all. The old revision's own map is read, in which that one goes on to count meanwhile.
func (r *revision) runMigration() error {
	verdict, err := r.migrate.Run(&ebpf.RunOptions{Data: make([]byte, 64)})
	if err != nil {
		return fmt.Errorf("migrate its object: %w", err)
	}
	if verdict != 0 { // of a guard or a charge that the compiler put in
		return fmt.Errorf("%w: its LAMBDA_MIGRATE() accessed what is not the lambda's, or did not end in time", ErrRefused)
	}
	return nil
}

func (p *prepared) Swap() {
	defer p.n.changing.Unlock()
	p.n.send(p.next)
	if err := p.n.swapCard(p.next, p.card); err != nil {
		p.n.cfg.Log.Error("the card answers nothing", "error", err)
	}
	for _, s := range p.next {
		if err := p.n.bound(s.r); err != nil {
			p.n.cfg.Log.Error("bound the superseded revisions", "slot", s.r.slot, "error", err)
		}
		if s.old != nil {
			p.n.drain(s.old)
		}
	}
}

// send has requests go to revisions from now on.
func (n *NIC) send(next []succession) {
	n.mu.Lock()
	defer n.mu.Unlock()
	serving := map[uint32]*revision{}
	for _, s := range next {
		serving[s.r.rec.Workload] = s.r
	}
	n.serve(serving)
	for _, s := range next {
		n.dispatch.send(s.r.entry(), s.r.state(), s.r.slot)
		n.cfg.reached("swapped")
	}
}

func (p *prepared) Drop() error {
	defer p.n.changing.Unlock()
	return errors.Join(p.n.unloadAll(p.next), p.card.close())
}

func (n *NIC) unloadAll(list []succession) error {
	var errs []error
	for _, s := range list {
		errs = append(errs, n.unload(s.r))
	}
	return errors.Join(errs...)
}

// fit makes an object fit for the machine and its kernel.
func fit(spec *ebpf.CollectionSpec) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the CPUs: %w", err)
	}
	if _, err := compiler.Fit(spec, cpus); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	kernel.Fit(spec)
	return nil
}

// load does everything for a revision but the migration and the swap.
func (n *NIC) load(d *backend.Deployment, old *revision) (r *revision, err error) {
	obj, err := n.objects.read(d)
	if err != nil {
		return nil, err
	}
	if err := fit(obj.spec); err != nil {
		return nil, err
	}
	if err := metering.Fill(obj.spec, time.Duration(d.Spec.Limits.Time)); err != nil {
		return nil, fmt.Errorf("%w: limits.time: %w", ErrRefused, err)
	}
	if err := errors.Join(n.checkServices(d), n.checkStage(d, old)); err != nil {
		return nil, err
	}
	var h backend.Handover
	if old != nil {
		if h, err = backend.HandOver(old.layouts, obj.layouts); err != nil {
			return nil, err
		}
	}
	r = &revision{layouts: obj.layouts, clones: d.Spec.P4 != "" && obj.spec.Maps[compiler.PassMap] != nil}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.unload(r))
		}
	}()
	if err := n.takeSlot(d, r, old); err != nil {
		return r, err
	}
	replace := obj.takeOver(h, old)
	if obj.spec.Maps[compiler.SharedMap] != nil { // a match stage has none: it works on the packet alone
		replace[compiler.SharedMap] = n.prog.LnRequests
	}
	if r.clones {
		replace[compiler.PassMap] = n.prog.stage.LnPasses
	}
	return r, n.loadProgram(obj, time.Duration(d.Spec.Limits.Time), r, replace)
}

// takeSlot gives the revision a slot and its records.
func (n *NIC) takeSlot(d *backend.Deployment, r, old *revision) (err error) {
	if r.slot, err = n.slots.take(1); err != nil {
		return fmt.Errorf("slots of the NIC: %w: remove a lambda or raise the number of slots", err)
	}
	n.loaded[r.slot] = r
	return n.reserve(d, r, old)
}

// reserve gives the revision its records: services of its own, message records in common with the revision before it if
// they ask for as many, so that a message in assembly is found again after a swap.
func (n *NIC) reserve(d *backend.Deployment, r, old *revision) (err error) {
	r.rec = rootLnSlot{
		Workload: d.Workload, Revision: d.Revision, Mode: uint32(modeOf(d)),
		MessageMax: uint32(d.Spec.Message.Max), MessageTimeoutMs: uint32(time.Duration(d.Spec.Message.Timeout).Milliseconds()),
		MessageWays: uint32(min(d.Spec.Message.InFlight, int(rootLnLimitLN_MESSAGE_WAYS))),
	}
	if old != nil {
		r.rec.Prev = old.slot
	}
	r.rec.Clones, r.rec.Once = uint16(flag(r.clones)), uint16(flag(d.Spec.Once))
	_, first := d.Spec.Message.Records()
	r.rec.RegionBase, r.rec.RegionCount = uint16(first), uint16(d.Spec.Message.Regions)
	if err := n.reserveServices(r, d.Services); err != nil {
		return err
	}
	if buckets := bucketsFor(d.Spec.Message); old != nil && old.rec.BucketCount == buckets {
		r.rec.BucketBase, r.rec.BucketCount = old.rec.BucketBase, buckets
	} else if buckets > 0 {
		if r.rec.BucketBase, err = n.buckets.take(buckets); err != nil {
			return fmt.Errorf("message records of the NIC: %w: lower message.in_flight or remove a lambda", err)
		}
		r.rec.BucketCount = buckets
		if err := n.clearBuckets(r.rec.BucketBase, buckets); err != nil {
			return err
		}
	}
	if err := n.clearStats(r.slot); err != nil {
		return err
	}
	defer n.cfg.reached("records reserved")
	return n.prog.LnSlots.Put(r.slot, &r.rec)
}

var modes = map[api.MessageMode]rootLnMode{
	api.ModePacket: rootLnModeLN_MODE_PACKET, api.ModeStream: rootLnModeLN_MODE_STREAM, api.ModeAssemble: rootLnModeLN_MODE_ASSEMBLE,
}

func modeOf(d *backend.Deployment) rootLnMode {
	if d.Spec.P4 != "" {
		return rootLnModeLN_MODE_STAGE
	}
	return modes[d.Spec.Message.Mode]
}

// checkStage refuses a second match stage: a packet has one way through the NIC.
func (n *NIC) checkStage(d *backend.Deployment, old *revision) error {
	isStage := d.Spec.P4 != ""
	if old != nil && old.isStage() != isStage {
		return fmt.Errorf("%w: a lambda with a match stage of its own (p4) and one without cannot take over from each other: remove it first", ErrRefused)
	}
	for id, r := range *n.serving.Load() {
		if isStage && r.isStage() && id != d.Workload {
			return fmt.Errorf("%w: the NIC has a match stage already, workload %#x: remove it, or write both into one program", ErrRefused, id)
		}
	}
	return nil
}

// bucketsFor rounds a lambda's messages in flight up to a power of two of whole buckets, as the hash needs it.
func bucketsFor(m api.MessageSpec) uint32 {
	if m.Mode == api.ModePacket {
		return 0
	}
	const ways = uint32(rootLnLimitLN_MESSAGE_WAYS)
	return (uint32(1)<<bits.Len32(max(uint32(m.InFlight), ways)-1) + ways - 1) / ways
}

// clearBuckets forgets the messages of whichever lambda had the buckets before: their records name slots that are gone.
func (n *NIC) clearBuckets(base, count uint32) error {
	for i := range count {
		if err := n.prog.messages.LnMessages.Put(base+i, &messagesLnBucket{}); err != nil {
			return fmt.Errorf("clear message records: %w", err)
		}
	}
	return nil
}

func (n *NIC) loadProgram(obj object, limit time.Duration, r *revision, replace map[string]*ebpf.Map) error {
	coll, err := newCollection(obj.spec, replace)
	if err != nil {
		return verifierError(err)
	}
	defer coll.Close()
	if err := obj.checkTime(coll, limit); err != nil {
		return err
	}
	return n.install(coll, r)
}

// install pins what the kernel loaded, and puts it into the revision's slot.
func (n *NIC) install(coll *ebpf.Collection, r *revision) error {
	r.prog, r.migrate = coll.DetachProgram(compiler.Program), coll.DetachProgram(compiler.MigrateProgram)
	for _, p := range r.parts() {
		if *p.layout == "" {
			continue
		}
		*p.objects = coll.DetachMap(p.section)
		if err := pinOver(*p.objects, n.partPin(r.slot, p)); err != nil {
			return err
		}
		n.cfg.reached(p.dir + " objects pinned")
	}
	if err := pinOver(r.prog, n.progPin(r.slot)); err != nil {
		return err
	}
	n.cfg.reached("program pinned")
	if err := n.prog.LnPrograms.Put(r.slot, uint32(r.prog.FD())); err != nil {
		return fmt.Errorf("put the program into slot %d: %w", r.slot, err)
	}
	n.cfg.reached("program in its slot")
	return nil
}

type pinner interface{ Pin(path string) error }

// pinOver pins in place of whatever an interrupted attempt left there.
func pinOver(p pinner, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make pin directory: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove stale pin: %w", err)
	}
	if err := p.Pin(path); err != nil {
		return fmt.Errorf("pin %s: %w", path, err)
	}
	return nil
}

func (n *NIC) progPin(slot uint32) string {
	return filepath.Join(n.cfg.pins(), "slots", strconv.Itoa(int(slot)))
}

func (n *NIC) partPin(slot uint32, p part) string {
	return filepath.Join(n.cfg.pins(), p.dir, fmt.Sprintf("%d-%s", slot, *p.layout))
}

// Remove takes a lambda out: its requests meet the answer for unknown workloads from now on.
func (n *NIC) Remove(_ context.Context, workload uint32) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	r := n.revision(workload)
	if r == nil {
		return nil
	}
	var err error
	if n.card.workload == workload {
		err = n.card.clear()
	}
	n.forget(r)
	n.drain(r)
	return err
}

// forget has requests of the revision's workload meet the answer for unknown ones.
func (n *NIC) forget(r *revision) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dispatch.forget(r.entry())
	n.cfg.reached("workload forgotten")
	n.rdma.disconnect(r.rec.Workload)
	n.serve(map[uint32]*revision{r.rec.Workload: nil})
}

// Endpoint says where requests for a workload go. It waits for nobody.
func (n *NIC) Endpoint(workload uint32) (netip.AddrPort, bool) {
	return n.Addr(), n.revision(workload) != nil
}
