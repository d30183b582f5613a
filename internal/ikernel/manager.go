// Package ikernel attaches ikernels to running servers, keeps them attached, and detaches them.
//
// An ikernel is attached by the daemon itself: when the daemon ends, however that comes about, the kernel detaches its programs, and the server gets all
// packets as before. The store keeps what is to be attached, and the next daemon attaches it again.
package ikernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/ikernels/memcached"
	"github.com/lambdanic/lambdanic/ikernels/sourcefilter"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// Errors of a Manager, besides those of the store.
var (
	ErrInvalid  = errors.New("invalid request")
	ErrExists   = errors.New("an ikernel of this name is attached")
	ErrRefused  = errors.New("cannot attach")
	ErrNotFound = errors.New("no such ikernel")
	// ErrApplication is of what only an application may do, for it has the ikernel for sockets of its own.
	ErrApplication = errors.New("the ikernel is an application's")
)

// again is how long after a failure an ikernel is attached again.
const again = time.Second

// Config says where ikernels are attached.
type Config struct {
	Node  string
	Store *store.Store
	Demux *demux.Demux // shares interfaces
	Log   *slog.Logger

	// Limits are what namespaces may do on the node; nil: there is nothing that could keep them to it.
	Limits func() *limits.Limits
	// Number is a namespace's, which comes to be if there is none of that name.
	Number func(ctx context.Context, namespace string) (uint32, error)
	// Known is the number of one that there is.
	Known func(ctx context.Context, namespace string) (uint32, error)

	observer *memcached.Observer // of the servers of all memcached-caches
}

// A Manager has the ikernels of one node.
type Manager struct {
	cfg  Config
	mu   sync.Mutex
	all  map[string]*attachment
	ends sync.WaitGroup // of processes that are followed

	entered atomic.Uint64 // ikernels of applications that are or were of namespaces
	living  sync.Map      // of these, the names of those that are
}

// Open returns a manager of what the store has for the node. Tend attaches it.
func Open(ctx context.Context, cfg Config) (*Manager, error) {
	records, err := cfg.Store.Ikernels(ctx, cfg.Node)
	ended := func(string) bool { return true } // with the former daemon
	if err := errors.Join(err, cfg.Store.DeleteApplicationIkernels(ctx, cfg.Node, ended)); err != nil {
		return nil, err
	}
	cfg.observer = new(memcached.Observer)
	m := &Manager{cfg: cfg, all: map[string]*attachment{}}
	for _, r := range records {
		m.all[r.Name] = newAttachment(&r)
	}
	return m, nil
}

// Attach attaches an ikernel and returns when it serves.
func (m *Manager) Attach(ctx context.Context, r api.IkernelRequest) (*api.Ikernel, error) {
	if err := check(&r); err != nil {
		return nil, err
	}
	a := newAttachment(&store.Ikernel{IkernelRequest: r})
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := m.add(a); err != nil {
		return nil, err
	}
	if err := m.begin(ctx, a, r.Before); err != nil {
		m.drop(a)
		return nil, err
	}
	return a.describe()
}

// begin attaches and records it, or does nothing.
func (m *Manager) begin(ctx context.Context, a *attachment, before string) error {
	err := a.attach(&m.cfg)
	if err == nil && before != "" {
		if err = m.checkBefore(a, before); err != nil {
			err = errors.Join(err, a.detach())
		}
	}
	if err != nil {
		return fmt.Errorf("%w %s to port %d: %w", ErrRefused, a.record.Ikernel, a.record.Port, err)
	}
	if err := m.cfg.Store.PutIkernel(ctx, m.cfg.Node, &a.record); err != nil {
		return errors.Join(err, a.detach())
	}
	m.followed(a)
	m.cfg.Log.Info("attached", "ikernel", a.record.Name, "port", a.port)
	return nil
}

var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// check checks a request, and gives it a name.
func check(r *api.IkernelRequest) error {
	r.Name = cmp.Or(r.Name, fmt.Sprintf("%s-%d", r.Ikernel, r.Port))
	k, ok := kinds[r.Ikernel]
	switch {
	case !ok:
		return fmt.Errorf("%w: there is no ikernel %q: use %s", ErrInvalid, r.Ikernel, strings.Join(Kinds(), ", "))
	case r.Port == 0:
		return fmt.Errorf("%w: give the port at which the server listens", ErrInvalid)
	case !nameRE.MatchString(r.Name):
		return fmt.Errorf("%w: %q is not a name: use 1 to 63 lower-case letters, digits and -", ErrInvalid, r.Name)
	case r.PID < 0:
		return fmt.Errorf("%w: %d is not a process", ErrInvalid, r.PID)
	case r.PID != 0 && r.Netns != "":
		return fmt.Errorf("%w: give a process or a network namespace, not both", ErrInvalid)
	case strings.Contains(r.Netns, "/"):
		return fmt.Errorf("%w: %q is not a network namespace: use a name that `ip netns` lists", ErrInvalid, r.Netns)
	case r.Mode != "" && !slices.Contains(modes, xdp.Mode(r.Mode)):
		return fmt.Errorf("%w: an ikernel cannot be attached in mode %q: use auto, native or generic", ErrInvalid, r.Mode)
	case r.Memory != 0 && !k.keeps:
		return fmt.Errorf("%w: %s keeps nothing: leave out its memory", ErrInvalid, r.Ikernel)
	}
	return errors.Join(checkKeys(r), checkLimits(r))
}

// checkLimits checks the prefixes of sources and the rate of a request.
func checkLimits(r *api.IkernelRequest) error {
	if !kinds[r.Ikernel].limits {
		if len(r.Allow) > 0 || r.Rate > 0 {
			return fmt.Errorf("%w: %s gets packets of all sources: leave out prefixes and a rate, and attach source-filter before it", ErrInvalid, r.Ikernel)
		}
		return nil
	}
	if err := sourcefilter.Check(r.Allow, r.Rate); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

var modes = []xdp.Mode{xdp.ModeAuto, xdp.ModeNative, xdp.ModeGeneric}

func (m *Manager) add(a *attachment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := a.record.Name
	if there := m.all[name]; there != nil {
		return fmt.Errorf("%w: %s, at port %d%s: choose another name with --name, or run `lambdanic ik detach %s` first", ErrExists, name, there.port, there.where, name)
	}
	var err error
	if a.order, err = m.orderOf(&a.record.IkernelRequest); err != nil {
		return err
	}
	a.record.Order, a.record.Before = a.order, "" // which may be detached
	m.all[name] = a
	return nil
}

func (m *Manager) drop(a *attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.gone = true
	delete(m.all, a.record.Name)
}

// lock finds an attachment and locks it.
func (m *Manager) lock(name string) (*attachment, error) {
	m.mu.Lock()
	a := m.all[name]
	m.mu.Unlock()
	if a != nil {
		a.mu.Lock()
		if !a.gone {
			return a, nil
		}
		a.mu.Unlock()
	}
	return nil, fmt.Errorf("%w: %s: `lambdanic ik list` shows those that are attached", ErrNotFound, name)
}

// Detach detaches an ikernel, and forgets it.
func (m *Manager) Detach(ctx context.Context, name string) error {
	a, err := m.lock(name)
	if err != nil {
		return err
	}
	defer a.mu.Unlock()
	if err := m.cfg.Store.DeleteIkernel(ctx, m.cfg.Node, name); err != nil {
		return err
	}
	m.drop(a)
	if err := a.detach(); err != nil {
		return err
	}
	m.cfg.Log.Info("detached", "ikernel", name)
	return nil
}

// List describes all ikernels: by port, and those of one port in the order in which they get a packet.
func (m *Manager) List() ([]api.Ikernel, error) {
	list := []api.Ikernel{}
	for _, a := range m.attachments() {
		i, err := a.current()
		if err != nil {
			return nil, err
		}
		if i != nil {
			list = append(list, *i)
		}
	}
	return list, nil
}

// current describes it; nil: it is detached.
func (a *attachment) current() (*api.Ikernel, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return nil, nil
	}
	return a.describe()
}

// attachments are all, in the order of List.
func (m *Manager) attachments() (list []*attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.all)) {
		list = append(list, m.all[name])
	}
	slices.SortStableFunc(list, func(a, b *attachment) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.order, b.order))
	})
	return list
}

// Tend attaches what waits, and attaches again what has lost its interface, until ctx ends. Ikernels that share a port lose their interfaces together, so
// all of them are detached before the first is attached again.
func (m *Manager) Tend(ctx context.Context) {
	for {
		for _, a := range m.attachments() {
			m.let(a)
		}
		for _, a := range m.attachments() {
			m.retry(ctx, a)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// let detaches it if it has lost its interface.
func (m *Manager) let(a *attachment) {
	if !a.mu.TryLock() {
		return // it is being attached or detached
	}
	defer a.mu.Unlock()
	if a.gone || a.instance == nil {
		return
	}
	why := a.lost(&m.cfg)
	if why == nil {
		return
	}
	log := m.cfg.Log.With("ikernel", a.record.Name)
	log.Warn("attaching again; what it kept is lost", "because", why)
	if err := a.detach(); err != nil {
		log.Warn("not all of it was detached", "error", err)
	}
}

// retry attaches it if it waits. Where its process has ended, there is nothing to wait for.
func (m *Manager) retry(ctx context.Context, a *attachment) {
	if !a.mu.TryLock() {
		return // it is being attached or detached
	}
	defer a.mu.Unlock()
	if a.gone || a.instance != nil || ctx.Err() != nil {
		return
	}
	log := m.cfg.Log.With("ikernel", a.record.Name)
	err := a.attach(&m.cfg)
	switch {
	case err == nil:
		log.Info("attached again")
		m.followed(a)
	case errors.Is(err, errEnded):
		m.forget(ctx, a)
	case a.waits == nil || a.waits.Error() != err.Error():
		a.waits = err
		log.Warn("cannot be attached: it is tried again", "error", err)
	}
}

// followed has the end of its process detach it.
func (m *Manager) followed(a *attachment) {
	process := a.process
	if process == nil {
		return
	}
	m.ends.Go(func() {
		<-process.Ended()
		if _, gone := process.Gone(); !gone {
			return // it was detached
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.process == process {
			m.forget(context.Background(), a)
		}
	})
}

// forget ends an attachment whose process has ended. Where the store cannot forget it, the next daemon does.
func (m *Manager) forget(ctx context.Context, a *attachment) {
	ctx, cancel := context.WithTimeout(ctx, forgetPatience)
	defer cancel()
	m.drop(a)
	log := m.cfg.Log.With("ikernel", a.record.Name, "pid", a.record.PID)
	log.Info("detached, as its process has ended")
	if err := errors.Join(a.detach(), m.cfg.Store.DeleteIkernel(ctx, m.cfg.Node, a.record.Name)); err != nil {
		log.Warn("not all of it was detached or forgotten", "error", err)
	}
}

// forgetPatience is how long the store may take.
const forgetPatience = 5 * time.Second

// Close detaches all. The store keeps them for the next daemon.
func (m *Manager) Close() error {
	var errs []error
	for _, a := range m.attachments() {
		a.mu.Lock()
		a.gone = true
		errs = append(errs, a.detach())
		a.mu.Unlock()
	}
	m.ends.Wait()
	return errors.Join(errs...)
}
