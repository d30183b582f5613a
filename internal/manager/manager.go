// Package manager deploys, lists and removes functions: it checks what it is given, has the store assign workload IDs and
// revisions, and has the worker apply them.
//
// A deploy has two phases. The candidate is written to the store, applied by the worker, and only then promoted to what is
// wanted. Whatever dies in between leaves the store with either the old revision and a candidate, which Recover completes
// or forgets, or the new one. A candidate that no target takes leaves the revision that serves untouched.
package manager

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
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/worker"
)

// ErrInvalid says that a request asks for something that cannot be.
var ErrInvalid = errors.New("invalid request")

// ErrBuild says that a source does not compile. Its message is the compiler's.
var ErrBuild = errors.New("build failed")

// Config holds what a manager works with.
type Config struct {
	Store     *store.Store
	Worker    *worker.Worker
	Artifacts worker.Artifacts
	// Build compiles a packed source into an artifact that Artifacts then has. Log is what the compiler has to say besides.
	Build func(ctx context.Context, source []byte) (a *artifact.Artifact, log string, err error)
	// Fuse makes one artifact of several, which Artifacts then has.
	Fuse func(ctx context.Context, members []*artifact.Artifact) (*artifact.Artifact, error)
	Log  *slog.Logger
	// Step, where set, is called after each step of a change with that step's name. Tests die in it.
	Step func(step string)
}

// Manager serves one instance. Its methods may be called by several goroutines.
type Manager struct {
	Config

	changes chan struct{} // holds one token: changes are made one at a time

	mu     sync.RWMutex
	routes map[string]store.Function // what is wanted, by NAMESPACE/NAME, so that requests need not ask the store
}

// New returns a manager. Call Recover before anything else.
func New(cfg Config) *Manager {
	if cfg.Step == nil {
		cfg.Step = func(string) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Manager{Config: cfg, changes: make(chan struct{}, 1), routes: make(map[string]store.Function)}
}

// lock waits for its turn to change something.
func (m *Manager) lock(ctx context.Context) error {
	select {
	case m.changes <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another change to end: %w", ctx.Err())
	}
}

func (m *Manager) unlock() { <-m.changes }

// Recover brings the node to what the store wants, whatever an earlier daemon left behind.
func (m *Manager) Recover(ctx context.Context) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	return m.recover(ctx)
}

// Renew has change replace places of the node while nothing is deployed, and brings back what ran there.
func (m *Manager) Renew(ctx context.Context, change func(context.Context) error) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	if err := change(ctx); err != nil {
		return err
	}
	return m.recover(ctx)
}

func (m *Manager) recover(ctx context.Context) error {
	if err := m.Worker.Reconcile(ctx, m.Store, m.Log); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	all, err := m.Store.List(ctx, "")
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.routes)
	for _, f := range all {
		m.routes[f.Key()] = f
	}
	return nil
}

// BuildSource compiles a packed source (compiler.PackSource).
func (m *Manager) BuildSource(ctx context.Context, source []byte) (*api.Artifact, error) {
	a, log, err := m.Build(ctx, source)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("build: %w", ctx.Err())
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBuild, err)
	}
	return a.Summary(log), nil
}

// Request asks for a deploy.
type Request struct {
	Namespace string // "" is the default
	Name      string
	Image     string // NAME@sha256:..., from BuildSource

	Targets  []api.Target      // in place of the spec's, where there are any
	Services map[string]string // addresses in place of the spec's, by service

	Env, Labels, Annotations map[string]string
}

var (
	namespaceRE = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	imageRE     = regexp.MustCompile(`^[a-z][a-z0-9_-]*@sha256:[0-9a-f]{64}$`)
)

// check turns r into a function that can be proposed.
func (m *Manager) check(r Request) (store.Function, error) {
	f := store.Function{
		Namespace: cmp.Or(r.Namespace, api.DefaultNamespace), Name: r.Name, Artifact: r.Image,
		Env: r.Env, Labels: r.Labels, Annotations: r.Annotations,
	}
	if !namespaceRE.MatchString(f.Namespace) {
		return f, fmt.Errorf("%w: %q is not a namespace: use lower-case letters, digits and -", ErrInvalid, f.Namespace)
	}
	if !imageRE.MatchString(r.Image) {
		return f, fmt.Errorf("%w: %q is not an image: use NAME@sha256:..., as `lambdanic build` prints it", ErrInvalid, r.Image)
	}
	_, digest, _ := strings.Cut(r.Image, "@")
	a, err := m.Artifacts.Get(digest)
	if errors.Is(err, artifact.ErrNotFound) {
		return f, fmt.Errorf("%w: image %s is not here: run `lambdanic build` first", ErrInvalid, r.Image)
	} else if err != nil {
		return f, fmt.Errorf("load image %s: %w", r.Image, err)
	}
	if len(a.Manifest.Members) > 0 {
		return f, fmt.Errorf("%w: %s is a program of several lambdas: deploy these, together or one by one", ErrInvalid, r.Image)
	}
	f.Spec = a.Manifest.Spec
	f.Spec.Name = r.Name
	for _, t := range r.Targets {
		if err := t.Check(); err != nil {
			return f, fmt.Errorf("%w: targets: %w", ErrInvalid, err)
		}
		if !slices.Contains(a.Manifest.Spec.Targets, t) {
			return f, fmt.Errorf("%w: %s is built for %v: add %s to `targets` in its %s", ErrInvalid, r.Image, a.Manifest.Spec.Targets, t, api.SpecFile)
		}
	}
	if len(r.Targets) > 0 {
		f.Spec.Targets = r.Targets
	}
	f.Spec.Services = slices.Clone(f.Spec.Services)
	for name, address := range r.Services {
		i := slices.IndexFunc(f.Spec.Services, func(s api.ServiceSpec) bool { return s.Name == name })
		if i < 0 {
			return f, fmt.Errorf("%w: %s has no service %q: its spec names %s", ErrInvalid, r.Name, name, serviceNames(f.Spec))
		}
		f.Spec.Services[i] = f.Spec.Services[i].At(address)
	}
	if err := f.Spec.Validate(); err != nil {
		return f, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return f, nil
}

func serviceNames(s api.Spec) string {
	if len(s.Services) == 0 {
		return "none"
	}
	var names []string
	for _, svc := range s.Services {
		names = append(names, svc.Name)
	}
	return strings.Join(names, ", ")
}

// Deploy makes a new revision of a function serve, and returns when it does.
func (m *Manager) Deploy(ctx context.Context, r Request) (*api.Function, error) {
	f, err := m.check(r)
	if err != nil {
		return nil, err
	}
	list, err := m.deploy(ctx, []store.Function{f}, func(cs []*store.Function) error { return m.apply(ctx, cs[0]) })
	if err != nil {
		return nil, err
	}
	return &list[0], nil
}

// deploy makes functions serve by apply, all of them or none.
func (m *Manager) deploy(ctx context.Context, fs []store.Function, apply func([]*store.Function) error) ([]api.Function, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.unlock()
	cs, err := m.Store.ProposeAll(ctx, fs)
	if err != nil {
		return nil, err
	}
	m.Step("deploy: proposed")
	if err := apply(cs); err != nil {
		return nil, m.abandon(ctx, cs, err)
	}
	m.Step("deploy: applied")
	if err := m.Store.Promote(ctx, cs...); err != nil {
		return nil, fmt.Errorf("%w: it serves, and the next `lambdanic up` records it", err)
	}
	m.Step("deploy: promoted")
	for _, c := range cs {
		m.setRoute(c)
	}
	var described []store.Function
	for _, c := range cs {
		m.settle(ctx, c)
		described = append(described, *c)
	}
	return m.describe(ctx, described)
}

// settle does what is left to do for a function that serves a new revision.
func (m *Manager) settle(ctx context.Context, c *store.Function) {
	m.Log.Info("deployed", "function", c.Key(), "revision", c.Revision, "target", c.Target)
	for _, r := range c.Refused {
		m.Log.Warn("a target does not run a function", "function", c.Key(), "revision", c.Revision, "target", r.Target, "because", r.Reason)
	}
	if err := m.Worker.Retire(ctx, c.Workload, c.Target); err != nil {
		// The new revision serves; what is left over goes at the next start.
		m.Log.Warn("could not end the function on its earlier target", "function", c.Key(), "error", err)
	}
	m.Step("deploy: retired")
	status := store.Status{Revision: c.Revision, State: api.StateReady}
	if err := m.Store.PutStatus(ctx, c.Namespace, c.Name, status); err != nil {
		m.Log.Warn("could not record a status", "function", c.Key(), "error", err)
	}
	m.Step("deploy: reported")
}

// apply makes a candidate serve: where the revision before it does, if there is one.
func (m *Manager) apply(ctx context.Context, c *store.Function) error {
	if served, ok := m.Route(c.Namespace, c.Name); ok {
		return m.Worker.Replace(ctx, c, &served)
	}
	return m.Worker.Apply(ctx, c)
}

// abandon takes back candidates that no target took. It does so even if the caller has gone.
func (m *Manager) abandon(ctx context.Context, cs []*store.Function, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	m.Step("deploy: refused")
	if err := m.Store.Abandon(ctx, cs...); err != nil {
		return errors.Join(why, err)
	}
	m.Step("deploy: abandoned")
	errs := []error{why}
	for _, c := range cs {
		errs = append(errs, m.takeBack(ctx, c, why))
	}
	return errors.Join(errs...)
}

func (m *Manager) takeBack(ctx context.Context, c *store.Function, why error) error {
	m.Log.Warn("refused", "function", c.Key(), "revision", c.Revision, "because", why)
	served, ok := m.Route(c.Namespace, c.Name)
	if !ok {
		return m.stop(ctx, c.Workload)
	}
	// A target may have taken the candidate in part, or before the caller left.
	if err := errors.Join(m.Worker.Keep(ctx, &served), m.Worker.Retire(ctx, c.Workload, served.Target)); err != nil {
		m.Log.Warn("could not take a refused revision back", "function", c.Key(), "error", err)
	}
	status := store.Status{
		Revision: served.Revision, State: api.StateReady,
		Reason: fmt.Sprintf("revision %d was refused: %v", c.Revision, why),
	}
	if err := m.Store.PutStatus(ctx, c.Namespace, c.Name, status); err != nil {
		m.Log.Warn("could not record a status", "function", c.Key(), "error", err)
	}
	return nil
}

// Remove ends a function.
func (m *Manager) Remove(ctx context.Context, namespace, name string) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	f, err := m.Store.Delete(ctx, cmp.Or(namespace, api.DefaultNamespace), name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	delete(m.routes, f.Key())
	m.mu.Unlock()
	m.Step("remove: deleted")
	m.Log.Info("removed", "function", f.Key())
	return m.stop(ctx, f.Workload)
}

// stop ends a draining workload everywhere, and lets its index be used again.
func (m *Manager) stop(ctx context.Context, workload uint32) error {
	if err := m.Worker.Retire(ctx, workload, ""); err != nil {
		return err
	}
	m.Step("remove: stopped")
	if err := m.Store.Free(ctx, workload); err != nil {
		return err
	}
	m.Step("remove: freed")
	return nil
}

// Route returns what is wanted under a name. It asks nobody.
func (m *Manager) Route(namespace, name string) (store.Function, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f, ok := m.routes[cmp.Or(namespace, api.DefaultNamespace)+"/"+name]
	return f, ok
}

func (m *Manager) setRoute(f *store.Function) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.routes[f.Key()] = *f
}

// wanted returns the routes of a namespace, all where it is "", by name.
func (m *Manager) wanted(namespace string) []store.Function {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := slices.Collect(maps.Values(m.routes))
	all = slices.DeleteFunc(all, func(f store.Function) bool { return namespace != "" && f.Namespace != namespace })
	slices.SortFunc(all, func(a, b store.Function) int { return strings.Compare(a.Key(), b.Key()) })
	return all
}
