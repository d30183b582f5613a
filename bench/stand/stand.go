// Package stand makes the place where lambdas are measured: a virtual NIC with the NIC program, and an equal pair without it,
// behind which the same lambdas run as processes.
package stand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/internal/nic"
)

// root holds a directory per measuring process, named by its ID, so that leftovers are found.
const root = "/run/lambdanic-bench"

// Config says where things are.
type Config struct {
	LambdaHost string // the binary
	Lambdas    string // the directory of the bundled lambdas
}

// Stand is what suites measure on.
type Stand struct {
	NIC   *nic.NIC
	Fast  *link.Pair // the NIC's own
	Plain *link.Pair // of the processes

	cfg       Config
	nicConfig nic.Config
	dir       string
	processes []*process.Backend
}

// New brings the stand up. What crashed stands left behind is removed first.
func New(ctx context.Context, cfg Config) (s *Stand, err error) {
	if err := Sweep(ctx); err != nil {
		return nil, err
	}
	s = &Stand{cfg: cfg, dir: filepath.Join(root, strconv.Itoa(os.Getpid()))}
	s.nicConfig = nicConfig(os.Getpid())
	if err := os.MkdirAll(s.nicConfig.RunDir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the measuring stand: %w", err)
	}
	if err := s.setUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("set up the measuring stand: %w", err), s.Close())
	}
	return s, nil
}

func nicConfig(pid int) nic.Config {
	return nic.Config{
		Instance: "bench" + strconv.Itoa(pid), Mode: nic.ModeNative, UnknownError: true,
		RunDir: filepath.Join(root, strconv.Itoa(pid), "nic"),
	}
}

func (s *Stand) setUp(ctx context.Context) (err error) {
	if s.NIC, err = nic.Up(ctx, s.nicConfig); err != nil {
		return err
	}
	s.Fast, err = link.Open(link.Existing{
		Host: s.NIC.HostEnd(), HostLink: filepath.Join(s.NIC.Pins(), "host_link"),
		Peer: s.NIC.Interface(), PeerLink: filepath.Join(s.NIC.Pins(), "root_link"), Namespace: s.NIC.Namespace(),
	})
	if err != nil {
		return err
	}
	s.Plain, err = link.New(link.Options{})
	return err
}

// Close takes everything down.
func (s *Stand) Close() error {
	ctx := context.Background()
	var errs []error
	for _, p := range s.processes {
		errs = append(errs, p.Shutdown(ctx))
	}
	for _, p := range []*link.Pair{s.Fast, s.Plain} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if s.NIC != nil {
		errs = append(errs, s.NIC.Close())
	}
	errs = append(errs, nic.Down(ctx, s.nicConfig), os.RemoveAll(s.dir))
	_ = os.Remove(root) // succeeds only if nobody else measures
	return errors.Join(errs...)
}

// Sweep takes down the stands whose owners no longer run.
func Sweep(ctx context.Context) error {
	dead, err := Dead(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, pid := range dead {
		dir := filepath.Join(root, strconv.Itoa(pid))
		errs = append(errs, sweepProcesses(ctx, dir), nic.Down(ctx, nicConfig(pid)), os.RemoveAll(dir))
	}
	return errors.Join(append(errs, link.Sweep())...)
}

// Dead lists the processes that left a directory of their ID in root and no longer run.
func Dead(root string) (pids []int, err error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// sweepProcesses ends the processes that a dead stand left running.
func sweepProcesses(ctx context.Context, dir string) error {
	runs, err := filepath.Glob(filepath.Join(dir, "process-*"))
	if err != nil {
		return err
	}
	self, err := os.Executable() // a placeholder: nothing will be started
	if err != nil {
		return err
	}
	var errs []error
	for _, run := range runs {
		b, err := process.New(process.Config{HostBinary: self, RunDir: run, Listen: nowhere})
		if err != nil {
			return err
		}
		_, err = b.Adopt(ctx)
		errs = append(errs, err, b.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

func nowhere(uint32) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.New("nothing is started")
}

// Build compiles a bundled lambda.
func (s *Stand) Build(ctx context.Context, name string) (*compiler.Artifact, error) {
	a, err := compiler.Build(ctx, filepath.Join(s.cfg.Lambdas, name), compiler.Options{})
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", name, err)
	}
	return a, nil
}

// Deployment makes revision 1 of a workload of an artifact. Each service is at the address of that name.
func Deployment(a *compiler.Artifact, workload uint32, services map[string]netip.AddrPort) backend.Deployment {
	d := backend.Deployment{
		Namespace: "bench", Name: a.Manifest.Spec.Name, Workload: workload, Revision: 1, Spec: a.Manifest.Spec,
		Layouts: a.Manifest.Layouts, BPF: a.BPF, Native: a.Native,
	}
	for _, svc := range a.Manifest.Spec.Services {
		d.Services = append(d.Services, backend.Service{
			Name: svc.Name, Protocol: svc.Protocol, Servers: []netip.AddrPort{services[svc.Name]}, Timeout: svc.Timeout,
		})
	}
	return d
}

// Flavour is a way to run a process.
type Flavour struct {
	Name    string
	Threads int
	Spin    bool
}

// Flavours are the ways in which a process is measured; the best is compared.
var Flavours = []Flavour{
	{"blocking", 1, false}, {"blocking, 2 threads", 2, false}, {"spinning", 1, true}, {"spinning, 2 threads", 2, true},
}

// Process is one lambda that runs as a process behind the plain pair.
type Process struct {
	Flavour
	Addr    netip.AddrPort
	PID     int
	backend *process.Backend
	load    uint32
}

// StartProcess runs a deployment as a process.
func (s *Stand) StartProcess(ctx context.Context, d backend.Deployment, f Flavour) (*Process, error) {
	run := filepath.Join(s.dir, fmt.Sprintf("process-%d", len(s.processes)))
	b, err := process.New(process.Config{
		HostBinary: s.cfg.LambdaHost, RunDir: run, Netns: filepath.Join("/run/netns", s.Plain.Namespace),
		Threads: f.Threads, Spin: f.Spin,
		Listen: func(uint32) (netip.AddrPort, error) { return netip.AddrPortFrom(s.Plain.Peer.Addr, api.RPCPort), nil },
	})
	if err != nil {
		return nil, err
	}
	s.processes = append(s.processes, b)
	if err := b.Deploy(ctx, d); err != nil {
		return nil, err
	}
	p := &Process{Flavour: f, backend: b, load: d.Workload}
	p.Addr, _ = b.Endpoint(d.Workload)
	if p.PID, err = recordedPID(run); err != nil {
		return nil, errors.Join(err, p.Stop(ctx))
	}
	return p, nil
}

// Stop ends the process. Only one runs at a time, as all listen on one port.
func (p *Process) Stop(ctx context.Context) error { return p.backend.Remove(ctx, p.load) }

// recordedPID reads the process's ID from the record that it is adopted by.
func recordedPID(run string) (int, error) {
	paths, err := filepath.Glob(filepath.Join(run, "*", "record.json"))
	if err != nil || len(paths) != 1 {
		return 0, fmt.Errorf("look for the process's record in %s: found %d: %w", run, len(paths), err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		return 0, err
	}
	var record struct{ PID int }
	if err := json.Unmarshal(text, &record); err != nil {
		return 0, fmt.Errorf("read %s: %w", paths[0], err)
	}
	return record.PID, nil
}
