// Package process runs lambdas natively: target process. Every lambda is one lambda-host process (host/), which outlives
// the daemon: Close lets it go on, and Adopt finds it again by its record in the run directory.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/supervise"
)

// Config says how processes are run.
type Config struct {
	HostBinary string // lambda-host
	RunDir     string // records, shared libraries and control sockets, one directory per workload
	// Listen chooses the address that a workload is served at.
	Listen  func(workload uint32) (netip.AddrPort, error)
	Netns   string // path of a network namespace, or "" for the daemon's own
	Threads int    // per process, 1 if 0
	Spin    bool   // wait for packets by spinning rather than blocking
	Logger  *slog.Logger
}

// Backend runs lambdas as processes. Its methods may be called at once from several goroutines.
type Backend struct {
	cfg    Config
	groups supervise.Cgroup // the cgroup that holds one cgroup per workload, or ""

	mu        sync.Mutex
	instances map[uint32]*instance
	keys      map[uint32]api.Keys // by the namespace's number; nil before the first Limit
	closed    bool
}

// New makes a backend. Call Adopt first, so that it knows the processes of an earlier one.
func New(cfg Config) (*Backend, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.Threads = max(1, cfg.Threads)
	if _, err := os.Stat(cfg.HostBinary); err != nil {
		return nil, fmt.Errorf("lambda-host: %w: build it with make, or say where it is", err)
	}
	dir, err := filepath.Abs(cfg.RunDir)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	cfg.RunDir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	b := &Backend{cfg: cfg, groups: groupOf(dir), instances: make(map[uint32]*instance)}
	if b.groups == "" && os.Geteuid() == 0 {
		cfg.Logger.Warn("there is no control group for functions' processes, so they can send datagrams to anybody", "remedy", "mount -t cgroup2 none /sys/fs/cgroup")
	}
	return b, nil
}

// get returns the workload's instance; with add, it makes a missing one.
func (b *Backend) get(workload uint32, add bool) (*instance, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.New("process backend is closed")
	}
	in := b.instances[workload]
	if in == nil && add {
		in = newInstance(b, workload)
		b.instances[workload] = in
	}
	return in, nil
}

func (b *Backend) list() []*instance {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*instance, 0, len(b.instances))
	for _, in := range b.instances {
		all = append(all, in)
	}
	slices.SortFunc(all, func(x, y *instance) int { return int(int64(x.workload) - int64(y.workload)) })
	return all
}

func (b *Backend) forget(in *instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.instances[in.workload] == in {
		delete(b.instances, in.workload)
	}
}

// Deploy makes a revision serve its workload. For the first revision it starts a process; a later one is loaded into that
// process, between two batches of packets. A revision that needs other settings gets a new process, which takes over
// before the old one ends. After an error the earlier revision serves on.
func (b *Backend) Deploy(ctx context.Context, d backend.Deployment) error {
	for {
		in, err := b.get(d.Workload, true)
		if err != nil {
			return err
		}
		err = in.deploy(ctx, d)
		if errors.Is(err, errRemoved) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deploy revision %d of %s/%s as a process: %w", d.Revision, d.Namespace, d.Name, err)
		}
		return nil
	}
}

// Remove lets a workload's process finish what it began, and ends it.
func (b *Backend) Remove(ctx context.Context, workload uint32) error {
	in, err := b.get(workload, false)
	if err != nil || in == nil {
		return err
	}
	if err := in.remove(ctx); err != nil {
		return fmt.Errorf("remove process of workload %#x: %w", workload, err)
	}
	return nil
}

// Status lists the workloads whose processes answer.
func (b *Backend) Status(ctx context.Context) ([]backend.Status, error) {
	var all []backend.Status
	for _, in := range b.list() {
		s, err := in.status(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue // it is being started again
		}
		all = append(all, s)
	}
	return all, nil
}

// Endpoint says where λ-RPC requests for a workload go.
func (b *Backend) Endpoint(workload uint32) (netip.AddrPort, bool) {
	in, err := b.get(workload, false)
	if err != nil || in == nil {
		return netip.AddrPort{}, false
	}
	return in.endpoint()
}

// Adopt takes over the processes that an earlier backend left in the run directory, and removes what no longer works. It
// returns the workloads that serve.
func (b *Backend) Adopt(ctx context.Context) ([]uint32, error) {
	entries, err := os.ReadDir(b.cfg.RunDir)
	if err != nil {
		return nil, fmt.Errorf("adopt processes: %w", err)
	}
	var adopted []uint32
	var errs []error
	for _, e := range entries {
		workload, err := strconv.ParseUint(e.Name(), 16, 32)
		if err != nil || !e.IsDir() {
			continue
		}
		in, err := b.get(uint32(workload), true)
		if err != nil {
			return adopted, err
		}
		ok, err := in.adopt(ctx)
		if ok {
			adopted = append(adopted, in.workload)
		}
		errs = append(errs, err)
	}
	return adopted, errors.Join(errs...)
}

// Close stops looking after the processes. They go on; the next backend adopts them.
func (b *Backend) Close() error {
	for _, in := range b.list() {
		in.detach()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	clear(b.instances)
	return nil
}

// Shutdown ends all processes.
func (b *Backend) Shutdown(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	var wg sync.WaitGroup
	all := b.list()
	errs := make([]error, len(all))
	for i, in := range all {
		wg.Go(func() { errs[i] = in.remove(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
