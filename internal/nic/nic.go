package nic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/module/card"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// Mode is how a NIC program is attached (package xdp).
type Mode = xdp.Mode

// The modes.
const (
	ModeAuto    = xdp.ModeAuto
	ModeNative  = xdp.ModeNative
	ModeGeneric = xdp.ModeGeneric
	ModeOffload = xdp.ModeOffload
)

// Config describes one NIC. The zero value of an option is its default.
type Config struct {
	Instance     string // names everything that belongs to it
	Interface    string // a real interface; "" makes a virtual NIC
	Mode         Mode
	Addresses    []netip.Addr // served besides the interface's own, as a balancer's virtual ones
	UnknownError bool         // answer unknown workloads with an error instead of handing them to the host
	Verify       bool         // check UDP checksums of requests; implied on real interfaces
	RunDir       string       // where the record lies, 0700
	PinDir       string       // /sys/fs/bpf/lambdanic
	Limits       string       // names what namespaces may do, for all NICs with this name; by default a NIC has that for itself
	Slots        int          // revisions that can be loaded at once, 4096
	PacerBinary  string       // host/pacer.c; without it clients are not told when an external call times out
	Log          *slog.Logger

	card       *card.Port                 // tests: stands for a card
	more       []module.Module            // tests: additional modules
	failpoint  func(step string)          // tests: called at every step that changes what outlives the process
	alter      func(*ebpf.CollectionSpec) // tests: changes the modules of the NIC program
	drainLimit time.Duration              // tests: how long the clients of a superseded revision may keep it; one minute
}

// DefaultPinDir is where NICs are pinned: the BPF file system's usual place.
const DefaultPinDir = "/sys/fs/bpf/lambdanic"

func (c Config) withDefaults() Config {
	if c.Mode == "" {
		c.Mode = ModeAuto
	}
	if c.PinDir == "" {
		c.PinDir = DefaultPinDir
	}
	if c.Slots == 0 {
		c.Slots = 4096
	}
	if c.drainLimit == 0 {
		c.drainLimit = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Verify = c.Verify || c.Interface != ""
	return c
}

// options spells out the settings that are fixed when the NIC program is loaded.
func (c Config) options() string {
	return fmt.Sprintf("mode=%s unknown_error=%t verify=%t slots=%d addresses=%v", c.Mode, c.UnknownError, c.Verify, c.Slots, c.Addresses)
}

// reached marks a step. The process may die after any step: tests have it do so.
func (c Config) reached(step string) {
	if c.failpoint != nil {
		c.failpoint(step)
	}
}

func (c Config) pins() string { return filepath.Join(c.PinDir, c.Instance) }

// limits is the directory of pins of what namespaces may do.
func (c Config) limits() string { return filepath.Join(c.PinDir, cmp.Or(c.Limits, c.Instance)) }

// NIC is one NIC program and the lambdas in it. Its methods may be called concurrently.
type NIC struct {
	cfg      Config
	rec      *record
	prog     *program.Program
	modules  modules
	root     attachment
	dispatch *dispatch
	own      *ownAddresses
	accounts *accounts
	reach    atomic.Pointer[module.Reach]
	adopted  bool
	running  sync.RWMutex // held by Ask while the program runs, and by Counters
	closed   bool         // guarded by running

	// serving are the current revisions, by workload ID. The map is replaced, never changed. Hold mu to replace a revision, and to do more
	// with one than check that it is there. Nobody waits for anything while holding mu.
	serving atomic.Pointer[map[uint32]*revision]
	mu      sync.Mutex

	// changing is held while something changes what is loaded. A deploy holds it from Prepare to Swap or Drop, and so while the kernel
	// verifies the program. It is taken before mu.
	changing    sync.Mutex
	loaded      map[uint32]*revision // all revisions, by slot: the current ones and those that drain
	objectFiles objectFiles
	slots       module.Ranges // of ln_slots; slot 0 stays empty
	drains      sync.WaitGroup
	closing     chan struct{}
}

// revision is the one that serves a workload, nil for none.
func (n *NIC) revision(workload uint32) *revision { return (*n.serving.Load())[workload] }

// serve replaces serving revisions by the next ones, and removes workloads whose next is nil.
func (n *NIC) serve(next map[uint32]*revision) {
	all := maps.Clone(*n.serving.Load())
	maps.Copy(all, next)
	maps.DeleteFunc(all, func(_ uint32, r *revision) bool { return r == nil })
	n.serving.Store(&all)
}

// Up adopts the instance's NIC if an earlier daemon left one that matches c, and makes it anew otherwise. Everything is
// pinned: the NIC outlives this process until Down.
func Up(ctx context.Context, c Config) (*NIC, error) {
	c = c.withDefaults()
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("raise the memory lock limit: %w: run as root", err)
	}
	if err := mountBPF(c.PinDir); err != nil {
		return nil, err
	}
	rec, err := readRecord(c.recordPath())
	if err != nil {
		return nil, err
	}
	if rec != nil {
		why := rec.matches(c)
		if why == nil {
			n, err := adopt(c, rec)
			if err == nil {
				n.start()
				return n, nil
			}
			why = err
		}
		c.Log.Warn("rebuilding the NIC", "instance", c.Instance, "because", why)
	}
	if err := Down(ctx, c); err != nil {
		return nil, fmt.Errorf("clear what is left of NIC %s: %w", c.Instance, err)
	}
	n, err := create(c)
	if err != nil {
		return nil, errors.Join(err, Down(ctx, c))
	}
	n.start()
	return n, nil
}

// create makes a NIC; the caller clears up after an error.
func create(c Config) (*NIC, error) {
	m := newModules(c)
	rec := &record{
		Instance: c.Instance, Mode: c.Mode, Interface: c.Interface, BootID: bootID(),
		Layout: uint32(program.RootLnVersionLN_LAYOUT_VERSION), Program: program.Digest(m.halves()), Options: c.options(),
	}
	if c.Interface == "" {
		v := virtualNames(c.Instance)
		if err := v.create(); err != nil {
			return nil, err
		}
		c.reached("virtual NIC made")
		rec.Namespace, rec.Interface, rec.HostEnd = v.namespace, v.nic, v.host
		rec.Reach = v.reach(c.Addresses)
	} else if err := rec.findAddresses(c); err != nil {
		return nil, err
	}
	if len(rec.Addrs) > maxAddresses {
		return nil, fmt.Errorf("%d addresses are more than the %d that a NIC can have: remove some from %s, or name fewer", len(rec.Addrs), maxAddresses, rec.Interface)
	}
	prog, err := program.Load(c.program(), m.halves())
	if err != nil {
		return nil, c.refused(err)
	}
	c.reached("NIC program pinned")
	n, err := newNIC(c, rec, m, prog)
	if err != nil {
		return nil, errors.Join(err, prog.Close())
	}
	n.own.set(&rec.Reach)
	if err := n.attach(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	c.reached("NIC program attached")
	if err := rec.write(c.recordPath()); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	c.reached("record written")
	return n, nil
}

func newNIC(c Config, rec *record, m modules, prog *program.Program) (_ *NIC, err error) {
	n := &NIC{
		cfg: c, rec: rec, modules: m, prog: prog, loaded: map[uint32]*revision{}, closing: make(chan struct{}),
		slots: module.NewRanges(1, prog.LnSlots.MaxEntries()),
	}
	n.reach.Store(&rec.Reach)
	n.serving.Store(&map[uint32]*revision{})
	if n.dispatch, err = mapDispatch(prog.LnDispatch); err != nil {
		return nil, err
	}
	if n.own, err = mapAddresses(prog.LnOwn); err != nil {
		return nil, errors.Join(err, n.dispatch.close())
	}
	if n.accounts, err = openAccounts(filepath.Join(c.pins(), "accounts"), prog.LnSlotStats); err != nil {
		return nil, errors.Join(err, n.dispatch.close(), n.own.close())
	}
	if err := n.open(); err != nil {
		return nil, errors.Join(err, n.dispatch.close(), n.own.close(), n.accounts.past.Close(), n.modules.each(module.Module.Close))
	}
	return n, nil
}

// start begins the background work of an open NIC.
func (n *NIC) start() {
	for _, m := range n.modules {
		m.Start()
	}
	n.keepAddresses()
}

// findAddresses fills in a real interface's name and addresses.
func (r *record) findAddresses(c Config) error {
	l, err := linkOf(r.Interface)
	if err != nil {
		return err
	}
	r.Index = l.Attrs().Index
	return find(&r.Reach, l, c.Addresses)
}

// mountBPF makes sure that dir is on a BPF file system.
func mountBPF(dir string) error {
	base := filepath.Dir(dir)
	var st unix.Statfs_t
	if err := unix.Statfs(base, &st); err == nil && st.Type == unix.BPF_FS_MAGIC {
		return os.MkdirAll(dir, 0o700)
	}
	if err := unix.Mount("bpf", base, "bpf", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mount a BPF file system on %s: %w: run `mount -t bpf bpf %s`", base, err, base)
	}
	return os.MkdirAll(dir, 0o700)
}

// Down removes an instance's NIC and all that belongs to it, whether or not a daemon runs. If nothing is there, that is not an error.
func Down(_ context.Context, c Config) error {
	c = c.withDefaults()
	site := c.site()
	errs := []error{newModules(c).each(func(m module.Module) error { return m.Down(site) })}
	if rec, err := readRecord(c.recordPath()); err != nil {
		errs = append(errs, err)
	} else if rec != nil || c.Interface == "" {
		errs = append(errs, virtualNames(c.Instance).remove())
	}
	c.reached("virtual NIC removed")
	errs = append(errs, c.leave())
	c.reached("interface left")
	errs = append(errs, os.RemoveAll(c.pins()))
	c.reached("pins removed")
	if err := os.Remove(c.recordPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	_ = program.RemovePinDir(c.PinDir) // only if this was the last instance
	return errors.Join(errs...)
}

// DropLimits removes what namespaces may do. Call it when the last NIC with this name of it is down.
func DropLimits(c Config) error {
	c = c.withDefaults()
	if err := os.RemoveAll(c.limits()); err != nil {
		return fmt.Errorf("remove what namespaces may do: %w", err)
	}
	_ = program.RemovePinDir(c.PinDir) // only if this was the last instance
	return nil
}

// Close releases the NIC, which goes on serving.
func (n *NIC) Close() error {
	n.changing.Lock()
	select {
	case <-n.closing:
	default:
		close(n.closing)
	}
	n.changing.Unlock()
	n.drains.Wait()
	n.running.Lock()
	n.closed = true
	n.running.Unlock()
	n.changing.Lock()
	defer n.changing.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	errs := []error{n.modules.each(module.Module.Close), n.dispatch.close(), n.own.close(), n.accounts.past.Close(), n.prog.Close()}
	if n.root != nil {
		errs = append(errs, n.root.Close())
	}
	for _, r := range *n.serving.Load() {
		errs = append(errs, r.close())
	}
	n.serving.Store(&map[uint32]*revision{})
	return errors.Join(errs...)
}

// Adopted says whether the NIC was running before Up.
func (n *NIC) Adopted() bool { return n.adopted }

// Addr is where λ-RPC requests go: an IPv4 address if the NIC has one.
func (n *NIC) Addr() netip.AddrPort {
	a := n.reach.Load().Addr
	if !a.IsValid() {
		a = n.reach.Load().Addr6
	}
	return netip.AddrPortFrom(a, api.RPCPort)
}

// Addr6 is the NIC's IPv6 address, if it has one.
func (n *NIC) Addr6() netip.Addr { return n.reach.Load().Addr6 }

// HostAddr is the host's own address on the NIC's link: what "host" means in a service's address.
func (n *NIC) HostAddr() netip.Addr { return n.reach.Load().HostAddr }

// Namespace is the network namespace of the interface, "" for our own.
func (n *NIC) Namespace() string { return n.rec.Namespace }

// Interface is the name of the interface that carries the NIC program.
func (n *NIC) Interface() string { return n.rec.Interface }

// HostEnd is the host's end of a virtual NIC, "" for a real one.
func (n *NIC) HostEnd() string { return n.rec.HostEnd }

// Mode is how the NIC program is attached.
func (n *NIC) Mode() Mode { return n.rec.Mode }

// Root is the root program, for measurements by BPF_PROG_TEST_RUN.
func (n *NIC) Root() *ebpf.Program { return n.prog.Root }

// Pins is the directory of the NIC's pins.
func (n *NIC) Pins() string { return n.cfg.pins() }
