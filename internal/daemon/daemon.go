// Package daemon puts one instance together: store, manager, worker and gateway in one process, above a NIC and host
// processes that outlive it.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/backend/nics"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/gateway"
	"github.com/lambdanic/lambdanic/internal/ikernel"
	"github.com/lambdanic/lambdanic/internal/journal"
	"github.com/lambdanic/lambdanic/internal/manager"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/worker"
)

// Config says what to bring up.
type Config struct {
	Paths
	NIC     nics.Options
	Budget  api.Budget   // of the NICs, for namespaces
	Etcd    store.Remote // no endpoints: etcd within the daemon
	Listen  string       // HOST:PORT of the gateway; "": it listens on the socket alone
	Version string
	Commit  string // "" where it is not known
	Log     *slog.Logger
}

var discard = slog.New(slog.DiscardHandler)

// Daemon is one running instance.
type Daemon struct {
	cfg          Config
	lock         *os.File
	public       net.Listener // nil where there is none
	private      net.Listener
	store        *store.Store
	targets      []backend.Target // that are up
	worker       *worker.Worker
	rest         func() // ends what the worker does, and waits for it
	manager      *manager.Manager
	ikernels     *ikernel.Manager
	applications *applications // nil: they are not served
	gateway      *gateway.Gateway
	journal      *journal.Journal
}

// keepUnused is how long an artifact is kept for the deploy that it was built for, or for one that goes back to it.
const keepUnused = time.Hour

// journalSize is how many records of its log a daemon keeps for `lambdanic logs`.
const journalSize = 4096

// Start brings an instance up, and adopts what an earlier daemon left running. A failure, and the end of ctx before all is up,
// leaves nothing behind where there was nothing before.
func Start(ctx context.Context, cfg Config) (*Daemon, error) {
	if cfg.Log == nil {
		cfg.Log = discard
	}
	if err := cfg.roomForFirst(); err != nil {
		return nil, err
	}
	made, err := makeDirs(cfg.Data, cfg.Run)
	if err != nil {
		return nil, err
	}
	d := &Daemon{cfg: cfg, journal: journal.New(journalSize)}
	d.cfg.Log = slog.New(d.journal.Handler(cfg.Log.Handler()))
	if err = d.start(ctx); err == nil {
		return d, nil
	}
	_ = d.Close()
	if errors.As(err, new(*RunningError)) {
		return nil, err // everything there is the running daemon's
	}
	if slices.Contains(made, cfg.Run) { // all that runs was begun by this attempt
		err = errors.Join(err, Down(context.WithoutCancel(ctx), cfg.Paths, false))
	}
	made.remove(cfg.Data, cfg.Run)
	return nil, err
}

func (d *Daemon) start(ctx context.Context) (err error) {
	cfg := &d.cfg
	if d.lock, err = acquire(cfg.Paths); err != nil {
		return err
	}
	if err := cfg.roomToStart(); err != nil {
		return err
	}
	if err := d.listen(ctx); err != nil {
		return err
	}
	host, err := nodeName()
	if err != nil {
		return err
	}
	if d.store, err = cfg.openStore(ctx, host); err != nil {
		return err
	}
	artifacts, err := artifact.Open(cfg.Artifacts(), cfg.Log)
	if err != nil {
		return fmt.Errorf("open the artifacts: %w", err)
	}
	if d.store.IsNew() { // an old store may have been moved away, and its images deployed again, or the store put back
		if err := artifacts.Renew(); err != nil {
			return err
		}
	}
	credentials, err := gateway.LoadCredentials(cfg.Data)
	if err != nil {
		return err
	}
	places, err := d.openPlaces(ctx)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	recent := artifact.NewRecent(artifacts)
	d.worker = worker.New(worker.Config{Node: host, Store: d.store, Artifacts: recent, Places: places, Budget: cfg.Budget, Log: cfg.Log})
	d.rest = d.worker.Start(ctx)
	d.manager = manager.New(manager.Config{
		Store: d.store, Node: d.worker, Nodes: []string{host}, Artifacts: recent, Log: cfg.Log,
		Room: cfg.roomToChange,
		Collect: func(used func(digest string) bool) ([]string, error) {
			return artifacts.Collect(used, time.Now().Add(-keepUnused))
		},
		Build: func(ctx context.Context, source []byte) (*artifact.Artifact, string, error) {
			return compile(ctx, source, artifacts)
		},
		Fuse: func(ctx context.Context, members []*artifact.Artifact) (*artifact.Artifact, error) {
			return link.Build(ctx, members, compiler.Options{Store: artifacts})
		},
	})
	if err := d.manager.Recover(ctx); err != nil {
		return err
	}
	on := demux.New(d.demux)
	if d.ikernels, err = ikernel.Open(ctx, ikernel.Config{
		Node: host, Store: d.store, Demux: on, Log: cfg.Log, Limits: d.limits, Number: d.manager.Number, Known: d.manager.KnownNumber,
	}); err != nil {
		return err
	}
	d.openApplications(on)
	d.gateway = gateway.New(gateway.Config{
		Node: host, Version: cfg.Version, Commit: cfg.Commit, Lookup: d.lookup, Manager: d.manager, Credentials: credentials, Log: cfg.Log,
		Describe: func() api.Node { return d.describe(host) }, Logs: d.journal.Query, NICs: d.counters, Ikernels: d.ikernels, Applications: d.applications.list,
	})
	return nil
}

// listen opens socket and TCP address. The lock says that nobody else serves the socket.
func (d *Daemon) listen(ctx context.Context) (err error) {
	var lc net.ListenConfig
	if d.cfg.Listen != "" {
		if d.public, err = lc.Listen(ctx, "tcp", d.cfg.Listen); err != nil {
			return fmt.Errorf("%w: choose another address with --listen", err) // err names this one
		}
	}
	if err := os.Remove(d.cfg.Socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("clear an old socket: %w", err)
	}
	// The directory is 0700, so that nobody gets in before the mode is right.
	if d.private, err = lc.Listen(ctx, "unix", d.cfg.Socket()); err != nil {
		return fmt.Errorf("listen on %s: %w", d.cfg.Socket(), err)
	}
	if err := os.Chmod(d.cfg.Socket(), 0o600); err != nil {
		return fmt.Errorf("close the socket to others: %w", err)
	}
	return nil
}

func (d *Daemon) lookup(namespace, name string) (gateway.Route, bool) {
	f, ok := d.manager.Route(namespace, name)
	if !ok {
		return gateway.Route{}, false
	}
	r := gateway.Route{Workload: f.Workload, Target: f.Target, Spec: &f.Spec, Key: d.manager.RequiredKey(f.Namespace)}
	switch {
	case f.Target != api.TargetNIC:
	case d.manager.HasNetworks(f.Namespace):
		r.Closed = gateway.ErrNetworks
	case len(d.cfg.NIC.Interfaces) > 0:
		r.Closed = gateway.ErrInterface
	}
	if endpoint, serves := d.worker.Endpoint(f.Target, f.Workload); serves {
		r.Endpoint = endpoint
		if canBeAsked(&f.Spec) {
			r.Asker = d.worker.Asker(f.Target)
		}
	}
	return r, true
}

// askLimit is the longest run for which the gateway's thread may do nothing else (testrun.Run.DoBriefly).
const askLimit = api.Duration(10 * time.Millisecond)

// canBeAsked says whether nic.Ask can answer requests to the lambda: a request is one packet that may get lost, needs no other packet,
// and ends soon. A match stage cannot be asked: the gateway answers for it.
func canBeAsked(s *api.Spec) bool {
	return s.Message.Mode == api.ModePacket && len(s.Services) == 0 && !s.Once && s.Limits.Time <= askLimit
}

func (d *Daemon) describe(host string) api.Node {
	n := api.Node{Name: host, Instance: d.cfg.Instance, Version: d.cfg.Version, PID: os.Getpid(), Store: "within the daemon", Budget: d.cfg.Budget}
	if len(d.cfg.Etcd.Endpoints) > 0 {
		n.Store = "etcd at " + d.cfg.Etcd.String()
	}
	if d.public != nil {
		n.Listen = d.public.Addr().String()
	}
	return n
}

// Node describes what came up.
func (d *Daemon) Node(ctx context.Context) (api.Node, error) {
	n := d.describe(d.worker.Node())
	var err error
	n.Targets, err = d.manager.Targets(ctx)
	return n, err
}

// Manager is the instance's manager.
func (d *Daemon) Manager() *manager.Manager { return d.manager }

// Serve answers until ctx ends or a listener breaks. Requests in progress may end; then the NIC and the processes serve on
// without a daemon.
func (d *Daemon) Serve(ctx context.Context) error {
	servers := map[net.Listener]*http.Server{d.private: d.gateway.Server(d.gateway.Private())}
	if d.public != nil {
		servers[d.public] = d.gateway.Server(d.gateway.Public())
	}
	broken := make(chan error, len(servers))
	for l, s := range servers {
		go func() { broken <- s.Serve(l) }()
	}
	tend, stop := context.WithCancel(ctx)
	var tending sync.WaitGroup
	d.tend(tend, tending.Go)
	tending.Go(func() { d.reportFaults(tend) })
	tending.Go(func() { d.ikernels.Tend(tend) })
	tending.Go(func() { d.serveApplications(tend) })
	tending.Go(func() { d.followNamespaces(tend) })
	defer tending.Wait()
	defer stop()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
		err = fmt.Errorf("serve: %w", err)
	case <-d.store.Failed():
		err = fmt.Errorf("%w; NIC and processes serve on until the next `lambdanic up`", d.store.Err())
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for _, s := range servers {
		if stop := s.Shutdown(grace); stop != nil {
			_ = s.Close()
		}
	}
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if late := d.manager.Close(settle); late != nil { // as after a crash
		d.cfg.Log.Warn("a change is cut short: the next `lambdanic up` completes it or forgets it", "error", late)
	}
	return err
}

// Close lets go of everything, detaches the ikernels, and leaves NIC and processes serving.
func (d *Daemon) Close() error {
	var errs []error
	if d.gateway != nil {
		d.gateway.Close()
	}
	for _, l := range []net.Listener{d.public, d.private} {
		if l == nil {
			continue
		}
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if d.rest != nil {
		d.rest()
	}
	if d.ikernels != nil {
		errs = append(errs, d.ikernels.Close())
	}
	errs = append(errs, d.applications.close(), d.closePlaces())
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}
