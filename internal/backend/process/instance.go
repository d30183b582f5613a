package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/check/native"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/supervise"
)

var (
	drainTime  = 2 * time.Second  // for a process to finish what it began
	startLimit = 10 * time.Second // for a process to answer on its control socket
)

const calm = 10 * time.Second // after so long, a process's death is not a failed start

var errRemoved = errors.New("workload was removed meanwhile")

// An instance is one workload and the process that serves it.
type instance struct {
	b        *Backend
	workload uint32
	dir      string
	group    supervise.Cgroup

	changing sync.Mutex // held during a change, which may start or end a process
	removed  bool
	restart  *time.Timer
	retry    *backoff.ExponentialBackOff

	mu     sync.Mutex // guards what follows: readers hold it or changing, writers both
	record record
	child  *supervise.Process
}

func newInstance(b *Backend, workload uint32) *instance {
	in := &instance{b: b, workload: workload, dir: filepath.Join(b.cfg.RunDir, fmt.Sprintf("%08x", workload))}
	in.group = b.groups.Child(fmt.Sprintf("%08x", workload))
	in.retry = &backoff.ExponentialBackOff{
		InitialInterval: 50 * time.Millisecond, RandomizationFactor: 0.3, Multiplier: 2, MaxInterval: 10 * time.Second,
	}
	in.retry.Reset()
	return in
}

// set changes fields that are also read during changes.
func (in *instance) set(change func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	change()
}

func (in *instance) serving() bool { return in.child != nil && alive(in.child) }

func (in *instance) socket() string { return filepath.Join(in.dir, in.record.Control) }

func (in *instance) deploy(ctx context.Context, d backend.Deployment) error {
	in.changing.Lock()
	defer in.changing.Unlock()
	if in.removed {
		return errRemoved
	}
	next, err := in.prepare(d)
	if err != nil {
		return in.abandon(err)
	}
	if next.Object == in.record.Object && slices.Equal(next.Args, in.record.Args) && in.serving() {
		return nil
	}
	if err := in.takeOver(ctx, next); err != nil {
		if next.Object != in.record.Object {
			os.Remove(filepath.Join(in.dir, next.Object))
		}
		return in.abandon(err)
	}
	return nil
}

// takeOver makes the next revision serve, with the state that it takes over: in the running process, if the settings are the
// same. A process that died has left no state.
func (in *instance) takeOver(ctx context.Context, next record) error {
	var h backend.Handover
	if in.serving() {
		var err error
		if h, err = backend.HandOver(in.record.Layouts, next.Layouts); err != nil {
			return err
		}
	}
	if !in.serving() || !slices.Equal(next.Args, in.record.Args) {
		return in.replace(ctx, next, handover(h))
	}
	next.Control, next.PID, next.Start = in.record.Control, in.record.PID, in.record.Start
	if err := in.try(ctx, next); err != nil {
		return err
	}
	if err := in.load(ctx, in.socket(), next, handover(h)); err != nil {
		return err
	}
	return in.commit(next)
}

// prepare writes the shared library and describes the process that is to serve it.
func (in *instance) prepare(d backend.Deployment) (record, error) {
	if len(d.Native) == 0 {
		return record{}, errors.New("the artifact has no shared library: build it for target process")
	}
	if err := native.Check(d.Native); err != nil {
		return record{}, err
	}
	listen := in.record.Listen
	if !listen.IsValid() {
		var err error
		if listen, err = in.b.cfg.Listen(d.Workload); err != nil {
			return record{}, fmt.Errorf("choose an address: %w", err)
		}
	}
	if err := in.makeDir(); err != nil {
		return record{}, err
	}
	r := record{Workload: d.Workload, Function: d.Namespace + "/" + d.Name, Namespace: &d.NamespaceID, Revision: d.Revision, Listen: listen, Layouts: d.Layouts}
	r.Object = objectName(d)
	r.Args = append(arguments(in.b.cfg, d), "--user", fmt.Sprint(userOf(in.dir)))
	if d.NamespaceID != 0 {
		r.Args = append(r.Args, "--windows", in.windows())
	}
	r.Services = []netip.AddrPort{}
	for _, s := range d.Services {
		r.Services = append(r.Services, s.Servers...)
	}
	return r, writeFile(filepath.Join(in.dir, r.Object), d.Native, userOf(in.dir))
}

func (in *instance) makeDir() error {
	if err := os.Mkdir(in.dir, 0o710); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	// The process may open files in the directory by name, not list it or write to it.
	return os.Chown(in.dir, 0, userOf(in.dir))
}

func (in *instance) load(ctx context.Context, socket string, r record, handover string) error {
	_, err := control(ctx, socket, "load %d %s%s", r.Revision, r.Object, handover)
	return err
}

// replace starts a process beside the serving one, if any, and ends the old one when the new one answers. Until then the old one
// gets all packets; afterwards, those of the messages that it has in progress.
func (in *instance) replace(ctx context.Context, next record, handover string) error {
	old, oldSocket := in.child, in.socket()
	if old != nil {
		defer func() { in.fence(in.record.Services) }()
	}
	if in.serving() {
		if _, err := control(ctx, oldSocket, "hold"); err != nil {
			return err
		}
	}
	c, err := in.run(ctx, &next, handover)
	os.Remove(filepath.Join(in.dir, stateFile))
	if err != nil {
		if in.serving() {
			_, rerr := control(context.WithoutCancel(ctx), oldSocket, "release")
			err = errors.Join(err, rerr)
		}
		return err
	}
	in.set(func() { in.child = c })
	err = in.commit(next)
	go in.watch(c, time.Now())
	if old != nil {
		if err := stop(ctx, old, oldSocket, in.b.cfg.Threads); err != nil {
			return err
		}
		os.Remove(oldSocket)
		_, rerr := control(ctx, in.socket(), "release")
		err = errors.Join(err, rerr)
	}
	return err
}

// abandon undoes a first deployment that failed.
func (in *instance) abandon(err error) error {
	if in.record.Object != "" {
		return err
	}
	return errors.Join(err, in.discard())
}

// run starts a process and gives it its revision, with the state of the process that serves.
func (in *instance) run(ctx context.Context, r *record, handover string) (*supervise.Process, error) {
	// An earlier version, whose check was less strict, may have written the file.
	object, err := os.ReadFile(filepath.Join(in.dir, r.Object))
	if err == nil {
		err = native.Check(object)
	}
	if err != nil {
		return nil, err
	}
	r.Control = in.freeSocket()
	socket := filepath.Join(in.dir, r.Control)
	args := append([]string{"--listen", r.Listen.String(), "--control", socket}, r.Args...)
	logFile := filepath.Join(in.dir, "log")
	in.fence(slices.Concat(r.Services, in.record.Services)) // a process that it replaces may still call its own
	c, err := in.b.spawn(args, in.group, logFile)
	if err != nil {
		return nil, err
	}
	r.PID, r.Start = c.PID, c.Start
	err = in.awaitSocket(ctx, c, socket, logFile)
	if err == nil {
		err = in.setKeys(ctx, socket, *r)
	}
	if err == nil {
		handover, err = in.save(ctx, handover)
	}
	if err == nil {
		err = in.load(ctx, socket, *r, handover)
	}
	if err != nil {
		err = errors.Join(err, c.Kill(), c.Close())
		os.Remove(socket)
		return nil, err
	}
	return c, nil
}

// freeSocket returns the name of a control socket that is not in use.
func (in *instance) freeSocket() string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("control-%d", i)
		if _, err := os.Lstat(filepath.Join(in.dir, name)); errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
}

// awaitSocket waits until a new process listens, or says why it does not.
func (in *instance) awaitSocket(ctx context.Context, c *supervise.Process, socket, logFile string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		if _, err := listener(socket); err == nil {
			return nil
		}
		select {
		case <-c.Ended():
			said, _ := os.ReadFile(logFile)
			return fmt.Errorf("lambda-host ended at once: %s", strings.TrimSpace(string(said)))
		case <-ctx.Done():
			return fmt.Errorf("lambda-host does not listen on %s: %w", socket, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// commit makes r the current record, and writes it for a later daemon.
func (in *instance) commit(r record) error {
	old := in.record
	if old.Revision == r.Revision {
		r.Deaths, r.Death = old.Deaths, old.Death
	}
	in.set(func() { in.record = r })
	err := r.write(in.dir)
	if err == nil && old.Object != "" && old.Object != r.Object {
		os.Remove(filepath.Join(in.dir, old.Object))
	}
	return err
}

// watch starts the process again when it dies.
func (in *instance) watch(c *supervise.Process, since time.Time) {
	<-c.Ended()
	how, gone := c.Gone()
	in.changing.Lock()
	defer in.changing.Unlock()
	if in.child != c || !gone || in.removed {
		return
	}
	if time.Since(since) > calm {
		in.retry.Reset()
	}
	death := "its process died"
	if how != "" {
		death += ": " + how
	}
	in.set(func() { // the next process's commit writes it
		in.record.Deaths++
		in.record.Death = death
	})
	in.log().Error("the process of a lambda died, and with it the lambda's state; starting it again", "pid", c.PID, "how", how)
	in.again()
}

// log names the function and its workload as the command line does.
func (in *instance) log() *slog.Logger {
	return in.b.cfg.Logger.With("function", in.record.Function, "workload", fmt.Sprintf("%#x", in.workload))
}

// again starts the process after a while, longer each time.
func (in *instance) again() {
	in.restart = time.AfterFunc(in.retry.NextBackOff(), func() {
		in.changing.Lock()
		defer in.changing.Unlock()
		if in.removed || in.serving() {
			return
		}
		os.Remove(in.socket())
		in.b.removeGroup(in.group) // what the lambda started would count against the new process's limit of threads
		next := in.record
		c, err := in.run(context.Background(), &next, "")
		if err != nil {
			in.log().Error("the process of a lambda does not start", "error", err)
			in.again()
			return
		}
		if err := in.commit(next); err != nil {
			in.log().Error("the process of a lambda cannot be recorded", "error", err)
		}
		in.set(func() { in.child = c })
		go in.watch(c, time.Now())
	})
}

func (in *instance) endpoint() (netip.AddrPort, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.record.Listen, in.record.Object != ""
}

func (in *instance) status(ctx context.Context) (backend.Status, error) {
	in.mu.Lock()
	socket, listen, serving := in.socket(), in.record.Listen, in.serving()
	deaths, death := in.record.Deaths, in.record.Death
	in.mu.Unlock()
	if !serving {
		return backend.Status{}, errors.New("no process")
	}
	s, err := askStatus(ctx, socket)
	s.Endpoint = listen
	s.Stats.Faults += deaths
	s.Stats.FaultsBy[api.FaultCrash] += deaths
	s.Fault = cmp.Or(s.Fault, death)
	return s, err
}

func (in *instance) remove(ctx context.Context) error {
	in.changing.Lock()
	defer in.changing.Unlock()
	in.removed = true
	if in.restart != nil {
		in.restart.Stop()
	}
	if in.child != nil {
		if err := stop(ctx, in.child, in.socket(), 0); err != nil {
			return err
		}
	}
	return in.discard()
}

// discard removes all traces.
func (in *instance) discard() error {
	in.removed = true
	in.b.forget(in)
	in.b.removeGroup(in.group)
	if err := os.RemoveAll(in.dir); err != nil {
		return fmt.Errorf("remove %s: %w", in.dir, err)
	}
	return nil
}

// detach lets the process go on without us.
func (in *instance) detach() {
	in.changing.Lock()
	defer in.changing.Unlock()
	in.removed = true
	if in.restart != nil {
		in.restart.Stop()
	}
	if in.child != nil {
		_ = in.child.Close()
	}
}

// adopt finds the process that an earlier daemon left, by its record. It ends other processes of the workload, which the daemon
// had no time to record or to end.
func (in *instance) adopt(ctx context.Context) (bool, error) {
	in.changing.Lock()
	defer in.changing.Unlock()
	if in.child != nil || in.removed {
		return in.serving(), nil
	}
	r, rerr := readRecord(in.dir)
	if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		in.b.cfg.Logger.Warn("a process is not adopted; its function is deployed anew, without its state", "because", rerr)
	}
	sockets, err := filepath.Glob(filepath.Join(in.dir, "control-*"))
	if err != nil {
		return false, err
	}
	for _, socket := range sockets {
		c, err := attach(socket)
		if err == nil && rerr == nil && in.child == nil && filepath.Base(socket) == r.Control && in.matches(ctx, c, r) {
			in.set(func() { in.record, in.child = r, c })
			go in.watch(c, time.Now())
			continue
		}
		if c != nil {
			err = stop(ctx, c, socket, 0)
		}
		os.Remove(socket)
		if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			in.b.cfg.Logger.Warn("stale control socket", "path", socket, "error", err)
		}
	}
	if in.child == nil {
		return false, in.discard()
	}
	return true, in.sweep()
}

// attach follows the process that listens on a control socket. Without one it returns nil, and no error.
func attach(socket string) (*supervise.Process, error) {
	pid, err := listener(socket)
	if err != nil {
		return nil, err
	}
	return supervise.Follow(pid)
}

// matches says whether a process is the record's, and runs the revision that the record says.
func (in *instance) matches(ctx context.Context, c *supervise.Process, r record) bool {
	if c.PID != r.PID || c.Start != r.Start || r.Workload != in.workload {
		return false
	}
	s, err := askStatus(ctx, filepath.Join(in.dir, r.Control))
	return err == nil && s.Workload == r.Workload && s.Revision == r.Revision
}

// sweep removes what interrupted deployments left.
func (in *instance) sweep() error {
	os.Remove(filepath.Join(in.dir, stateFile))
	objects, err := filepath.Glob(filepath.Join(in.dir, "*.so*"))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if filepath.Base(object) != in.record.Object {
			os.Remove(object)
		}
	}
	return nil
}
