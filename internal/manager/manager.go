// Package manager deploys, lists and removes functions: it checks a request, decides where the function is to run, writes that to the store,
// and waits for the statuses of the nodes' workers.
//
// A deploy has two phases. The candidate is written to the store and tried by its nodes, beside what serves. Only then is it promoted to
// the wanted revision. A crash in between leaves the store with either the old revision and a candidate, which Recover completes
// or forgets, or the new revision. A candidate that no target takes leaves the running revision untouched.
//
// A caller who hangs up ends a change only where it can be taken back as a whole: see change.go.
package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// ErrInvalid says that a request asks for something impossible.
var ErrInvalid = errors.New("invalid request")

// ErrBuild says that a source does not compile. Its message is the compiler's.
var ErrBuild = errors.New("build failed")

// Artifacts holds compiled lambdas by digest.
type Artifacts interface {
	Get(digest string) (*artifact.Artifact, error)
	Manifest(digest string) (*api.Manifest, error)
}

// Node is the worker of this machine, for what only it knows.
type Node interface {
	// Sync brings the node into line with its placements in the store, and reports the state of candidates there, without trying any.
	Sync(ctx context.Context) error
	// Running says what runs there.
	Running(ctx context.Context) (backend.Running, error)
	// Accounts says what the lambdas of each namespace counted, by the namespace's number; nil where nothing counts for namespaces.
	Accounts(ctx context.Context) (map[uint32]backend.Stats, error)
	// Limit has the node keep the namespaces to the quotas that the store has.
	Limit(ctx context.Context) error
	// Targets says which targets it has, and how many lambdas run on each.
	Targets(ctx context.Context) ([]api.NodeTarget, error)
	// Available is no error where the node has that target.
	Available(t api.Target) error

	// The objects of a lambda (backend.Objects).
	Objects(ctx context.Context, t api.Target, workload uint32) ([]api.Object, error)
	ReadObject(ctx context.Context, t api.Target, workload uint32, name string) ([]byte, error)
	WriteObject(ctx context.Context, t api.Target, workload uint32, name string, value []byte) error
	// Its other resources (backend.Resource).
	AddResource(ctx context.Context, t api.Target, workload uint32, path string, decode func(request any) error) (any, error)
	ListResource(ctx context.Context, t api.Target, workload uint32, path string) (any, error)
	RemoveResource(ctx context.Context, t api.Target, workload uint32, path string, number uint32) error
}

// Config holds what a manager works with.
type Config struct {
	Store     *store.Store
	Node      Node
	Nodes     []string // that run every function; this machine's is one of them
	Artifacts Artifacts
	// Build compiles a packed source into an artifact that Artifacts then has. Log has the compiler's warnings.
	Build func(ctx context.Context, source []byte) (a *artifact.Artifact, log string, err error)
	// Fuse makes one artifact of several, which Artifacts then has.
	Fuse func(ctx context.Context, members []*artifact.Artifact) (*artifact.Artifact, error)
	// Collect, where set, deletes the artifacts that are not used and were not built or used lately, and returns their digests.
	Collect func(used func(digest string) bool) ([]string, error)
	Log     *slog.Logger
	// Room, where set, refuses a change that the disk has no space for. Removing a function needs no space.
	Room func() error
	// Step, where set, is called after each step of a change with that step's name. Tests die in it.
	Step func(step string)
}

// Manager serves one instance. Its methods may be called by several goroutines.
type Manager struct {
	Config

	changes   *semaphore.Weighted // of 1: changes are made one at a time
	unsettled bool                // an earlier change left something for recover; guarded by changes

	mu         sync.RWMutex
	routes     map[string]*store.Function // what is wanted, by NAMESPACE/NAME, so that requests need not ask the store
	namespaces map[string]store.Namespace // what the store has of them, by name
	stuck      map[uint32]uint32          // the latest revision of a workload that could not be taken out

	claims  sync.Mutex     // is held while artifacts are collected
	claimed map[string]int // how many deploys in progress name an artifact, by its digest
}

// New returns a manager. Call Recover before anything else.
func New(cfg Config) *Manager {
	if cfg.Step == nil {
		cfg.Step = func(string) {}
	}
	if cfg.Room == nil {
		cfg.Room = func() error { return nil }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Manager{
		Config: cfg, changes: semaphore.NewWeighted(1), claimed: make(map[string]int),
		routes: make(map[string]*store.Function), namespaces: make(map[string]store.Namespace), stuck: make(map[uint32]uint32),
	}
}

// BuildSource compiles a packed source (compiler.PackSource).
func (m *Manager) BuildSource(ctx context.Context, source []byte) (*api.Artifact, error) {
	if err := m.Room(); err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	a, log, err := m.Build(ctx, source)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("build: %w", ctx.Err())
	} else if err != nil {
		return nil, buildError(err)
	}
	return a.Summary(log), nil
}

// buildError distinguishes a source that does not compile from a node that cannot compile.
func buildError(err error) error {
	if compiler.NodeFailed(err) {
		return fmt.Errorf("this node failed to build, through no fault of the source: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrBuild, err)
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

var imageRE = regexp.MustCompile(`^[a-z][a-z0-9_-]*@sha256:[0-9a-f]{64}$`)

func (m *Manager) artifact(image string) (*artifact.Artifact, error) {
	a, err := m.Artifacts.Get(artifact.DigestOf(image))
	if err != nil {
		return nil, fmt.Errorf("load image %s: %w", image, err)
	}
	return a, nil
}

// check turns r into a function that can become a candidate.
func (m *Manager) check(r Request) (store.Function, error) {
	f := store.Function{
		Namespace: cmp.Or(r.Namespace, api.DefaultNamespace), Name: r.Name, Artifact: r.Image, Nodes: m.Nodes,
		Env: r.Env, Labels: r.Labels, Annotations: r.Annotations,
	}
	if err := checkNamespace(f.Namespace); err != nil {
		return f, err
	}
	if !imageRE.MatchString(r.Image) {
		return f, fmt.Errorf("%w: %q is not an image: use NAME@sha256:..., as `lambdanic build` prints it", ErrInvalid, r.Image)
	}
	name, digest, _ := strings.Cut(r.Image, "@")
	a, err := m.artifact(r.Image)
	if errors.Is(err, artifact.ErrNotFound) {
		return f, fmt.Errorf("%w: image %s is not here: run `lambdanic build` first", ErrInvalid, r.Image)
	} else if err != nil {
		return f, err
	}
	if built := a.Manifest.Spec.Name; name != built {
		return f, fmt.Errorf("%w: image %s is not of %s but of %s: use %s@%s, and name the function as you like", ErrInvalid, r.Image, name, built, built, digest)
	}
	if len(a.Manifest.Members) > 0 {
		return f, fmt.Errorf("%w: %s is a program of several lambdas: deploy these, together or one by one", ErrInvalid, r.Image)
	}
	f.Spec, f.Memory = a.Manifest.Spec, a.Memory()
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

// Deploy makes a new revision of a function serve, and returns once it serves.
func (m *Manager) Deploy(ctx context.Context, r Request) (*api.Function, error) {
	defer m.claim(r)()
	f, err := m.check(r)
	if err != nil {
		return nil, err
	}
	list, err := m.deploy(ctx, []store.Function{f}, func() (*plan, error) { return m.plan(ctx, &f) })
	if err != nil {
		return nil, err
	}
	return &list[0], nil
}

// Route returns the wanted function of a name, from memory. Callers share it, and must not change it.
func (m *Manager) Route(namespace, name string) (*store.Function, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f, ok := m.routes[cmp.Or(namespace, api.DefaultNamespace)+"/"+name]
	return f, ok
}

func (m *Manager) setRoute(f *store.Function) {
	m.mu.Lock()
	defer m.mu.Unlock()
	route := *f
	m.routes[f.Key()] = &route
}

// wanted returns the routes of a namespace, all where it is "", by name.
func (m *Manager) wanted(namespace string) []store.Function {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []store.Function
	for _, f := range m.routes {
		if namespace == "" || f.Namespace == namespace {
			all = append(all, *f)
		}
	}
	slices.SortFunc(all, func(a, b store.Function) int { return strings.Compare(a.Key(), b.Key()) })
	return all
}
