// Package rig runs one artifact in two places, the NIC and a process beside it, and asks both the same.
package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/freeport"
	"github.com/lambdanic/lambdanic/test/packets"
)

// ErrLoad says that the kernel refuses a lambda.
var ErrLoad = errors.New("does not load into the NIC")

// Workload is the ID of the lambda in the rig; the rig has one at a time.
const Workload = 7

// Config says where things are.
type Config struct {
	LambdaHost string // the binary
	Instance   string // names the NIC; nobody else may have one of this name
	Threads    int    // of the process; 0: one
	Log        *slog.Logger
}

// Rig is a virtual NIC and a place for processes.
type Rig struct {
	nic      *nic.NIC
	config   nic.Config
	backend  *process.Backend
	dir      string
	conn     *net.UDPConn // to the process
	requests uint64
	out      []byte
}

// Open brings a rig up.
func Open(ctx context.Context, c Config) (r *Rig, err error) {
	dir, err := os.MkdirTemp("", "lnrig-") // a short path: it holds UNIX sockets
	if err != nil {
		return nil, err
	}
	r = &Rig{dir: dir, out: make([]byte, 1<<16), config: nic.Config{
		Instance: c.Instance, RunDir: filepath.Join(dir, "nic"), UnknownError: true, Slots: 16, Log: c.Log,
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte(packets.NICIP4))},
	}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open the rig: %w", err), r.Close())
		}
	}()
	if err := os.Mkdir(r.config.RunDir, 0o700); err != nil {
		return r, err
	}
	if r.backend, err = process.New(process.Config{
		HostBinary: c.LambdaHost, RunDir: filepath.Join(dir, "p"), Threads: c.Threads, Logger: c.Log, Listen: freeport.UDP,
	}); err != nil {
		return r, err
	}
	r.nic, err = nic.Up(ctx, r.config)
	return r, err
}

// Close takes everything down.
func (r *Rig) Close() error {
	ctx := context.Background()
	var errs []error
	if r.backend != nil {
		errs = append(errs, r.backend.Shutdown(ctx))
	}
	if r.nic != nil {
		errs = append(errs, r.nic.Close())
	}
	return errors.Join(append(errs, nic.Down(ctx, r.config), os.RemoveAll(r.dir))...)
}

// Put puts an artifact in both places, until the next Remove. The error is ErrLoad where only the NIC refuses it.
func (r *Rig) Put(ctx context.Context, a *compiler.Artifact) error {
	d := backend.Deployment{
		Namespace: "rig", Name: a.Manifest.Spec.Name, Workload: Workload, Revision: 1, Spec: a.Manifest.Spec,
		Layouts: a.Manifest.Layouts, BPF: a.BPF, Native: a.Native,
	}
	if err := r.backend.Deploy(ctx, d); err != nil {
		return err
	}
	addr, _ := r.backend.Endpoint(Workload)
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return errors.Join(err, r.Remove(ctx))
	}
	r.conn = conn
	if err := r.nic.Deploy(ctx, d); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrLoad, err), r.Remove(ctx))
	}
	return nil
}

// Endpoints are where clients find the lambda that is in the rig.
func (r *Rig) Endpoints() (nic, process string) {
	return r.nic.Addr().String(), r.conn.RemoteAddr().String()
}

// Stats are what the NIC and the process counted.
func (r *Rig) Stats(ctx context.Context) (onNIC, process backend.Stats, err error) {
	for _, of := range []struct {
		status func(context.Context) ([]backend.Status, error)
		stats  *backend.Stats
	}{{r.nic.Status, &onNIC}, {r.backend.Status, &process}} {
		list, err := of.status(ctx)
		if err != nil {
			return onNIC, process, err
		}
		for _, s := range list {
			if s.Workload == Workload {
				*of.stats = s.Stats
			}
		}
	}
	return onNIC, process, nil
}

// Remove takes out the artifact of the last Put.
func (r *Rig) Remove(ctx context.Context) error {
	errs := []error{r.backend.Remove(ctx, Workload), r.nic.Remove(ctx, Workload)}
	if r.conn != nil {
		errs = append(errs, r.conn.Close())
		r.conn = nil
	}
	return errors.Join(errs...)
}

// Answer is a lambda's answer.
type Answer struct {
	Type    api.Type
	Code    uint8 // status, or reason of an error
	Fault   api.Fault
	Payload []byte
}

func answerOf(h api.Header, payload []byte) Answer {
	a := Answer{Type: h.Type, Code: h.Code, Payload: bytes.Clone(payload)}
	if h.Type == api.TypeError && api.Code(h.Code) == api.CodeLambdaFault {
		a.Fault = api.Fault(h.MessageLen)
	}
	return a
}

// Equal says whether two answers are the same, byte for byte.
func (a Answer) Equal(b Answer) bool {
	return a.Type == b.Type && a.Code == b.Code && bytes.Equal(a.Payload, b.Payload)
}

func (a Answer) String() string {
	return fmt.Sprintf("type %d code %d, %d bytes %.100x", a.Type, a.Code, len(a.Payload), a.Payload)
}

// request is one packet, padded so that any reply fits.
func (r *Rig) request(method uint32, body []byte) packets.RPC {
	r.requests++
	return packets.RPC{Workload: "it", Method: method, Request: r.requests, Payload: string(body), Room: api.RPCMaxPayload}
}

var workloads = map[string]uint32{"it": Workload}

// AskNIC runs the NIC program on a request, by BPF_PROG_TEST_RUN.
func (r *Rig) AskNIC(method uint32, body []byte) (Answer, error) {
	f := packets.Frame{RPC: r.request(method, body)}
	frame, err := f.Build(workloads)
	if err != nil {
		return Answer{}, err
	}
	_, out, err := r.RunNIC(frame)
	if err != nil {
		return Answer{}, err
	}
	h, payload, err := packets.Answer(frame, out)
	return answerOf(h, payload), err
}

// RunNIC runs the NIC program on a frame, and returns its verdict and the resulting frame, which is valid until the next call.
func (r *Rig) RunNIC(frame []byte) (verdict uint32, out []byte, err error) {
	opts := ebpf.RunOptions{Data: frame, DataOut: r.out}
	verdict, err = r.nic.Root().Run(&opts)
	if err != nil {
		return 0, nil, fmt.Errorf("run the NIC program: %w", err)
	}
	return verdict, opts.DataOut, nil
}

// TimeNIC says how long the NIC program takes for a request, once, on the CPU of this thread.
func (r *Rig) TimeNIC(method uint32, body []byte) (time.Duration, error) {
	f := packets.Frame{RPC: r.request(method, body)}
	frame, err := f.Build(workloads)
	if err != nil {
		return 0, err
	}
	_, d, err := r.nic.Root().Benchmark(frame, 1, nil)
	if err != nil {
		return 0, fmt.Errorf("time the NIC program: %w", err)
	}
	return d, nil
}

// patience is how long a process may take to answer, whatever else the machine does.
const patience = 20 * time.Second

// AskProcess sends a request to the process.
func (r *Rig) AskProcess(method uint32, body []byte) (Answer, error) {
	q := r.request(method, body)
	if _, err := r.conn.Write(q.Build(workloads)); err != nil {
		return Answer{}, fmt.Errorf("ask the process: %w", err)
	}
	if err := r.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return Answer{}, err
	}
	for {
		n, err := r.conn.Read(r.out)
		if err != nil {
			return Answer{}, fmt.Errorf("ask the process: %w", err)
		}
		h, payload, err := api.ParsePacket(r.out[:n])
		if err == nil && h.Request == q.Request {
			return answerOf(h, payload), nil
		}
	}
}
