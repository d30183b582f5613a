package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/fused"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/rig"
)

const (
	sourceSteps = "instructions of the four lambdas of the λ-NIC paper's figure 9 in one program, after each step"
	sourceFused = "BPF_PROG_TEST_RUN of the NIC program with the lambda, one packet a run: in one program for all, in such a program before it is made smaller, and alone"
)

// fusedRuns is the number of runs per sample.
const fusedRuns = 501

// figure9 measures how small four lambdas become in one program, and what that costs each of them.
func figure9(ctx context.Context, _ *rig.Rig, o measure.Options) ([]report.Result, error) {
	sources, err := fused.Sources(o.Lambdas)
	if err != nil {
		return nil, err
	}
	steps, err := link.Steps(ctx, sources)
	if err != nil {
		return nil, err
	}
	naive := map[string]report.Samples{"naive": {float64(steps[0].Instructions)}}
	var rs []report.Result
	for _, s := range steps {
		rs = append(rs, report.Compare("fig9."+s.Name, "instructions", report.Lower, sourceSteps, report.Samples{float64(s.Instructions)}, naive))
	}
	times, err := fusedTimes(ctx, sources, o)
	return append(rs, times...), err
}

// The forms in which each lambda is deployed, by the suffix of its name.
var fusedForms = [...]string{"", "-alone", "-naive"}

// A timedMember is one lambda, and a request to each of its forms.
type timedMember struct {
	name   string
	frames [len(fusedForms)][]byte
	times  [len(fusedForms)]report.Samples
}

func fusedTimes(ctx context.Context, sources [][]byte, o measure.Options) (rs []report.Result, err error) {
	dir, err := os.MkdirTemp("", "lambdanic-fig9-")
	if err != nil {
		return nil, err
	}
	c := nic.Config{
		Instance: "fig9-" + strconv.Itoa(os.Getpid()), RunDir: filepath.Join(dir, "nic"), UnknownError: true, Slots: 16,
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte(packets.NICIP4))},
	}
	defer func() { err = errors.Join(err, nic.Down(context.WithoutCancel(ctx), c), os.RemoveAll(dir)) }()
	if err := os.Mkdir(c.RunDir, 0o700); err != nil {
		return nil, err
	}
	n, err := nic.Up(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	members, err := deployForms(ctx, n, sources)
	if err != nil {
		return nil, err
	}
	for round := range o.Rounds {
		o.Log("compiler: fused against alone, round %d of %d", round+1, o.Rounds)
		for i := range members {
			if err := measure.OnCPU(measure.ServerCPU(), func() error { return members[i].sample(n) }); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range members {
		rs = append(rs, report.Compare("fig9."+m.name+".packet", "ns", report.Lower, sourceFused, m.times[0],
			map[string]report.Samples{"alone": m.times[1], "naive": m.times[2]}))
	}
	return rs, nil
}

// deployForms puts the lambdas on the NIC in each form, and makes the requests.
func deployForms(ctx context.Context, n *nic.NIC, sources [][]byte) (members []timedMember, err error) {
	numbers := map[string]uint32{}
	if err := errors.Join(
		deployOne(ctx, n, sources, numbers, "", link.Fuse),
		deployAlone(ctx, n, sources, numbers, "-alone"),
		deployOne(ctx, n, sources, numbers, "-naive", link.Naive),
	); err != nil {
		return nil, err
	}
	for _, r := range fusedRequests {
		m := timedMember{name: r.Workload + "." + r.about}
		for i, suffix := range fusedForms {
			f := packets.Frame{RPC: r.RPC}
			f.RPC.Workload += suffix
			if m.frames[i], err = f.Build(numbers); err != nil {
				return nil, err
			}
		}
		members = append(members, m)
	}
	return members, nil
}

// number gives each of the lambdas a workload ID under a form's suffix, and returns its deployment.
func number(ctx context.Context, n *nic.NIC, sources [][]byte, numbers map[string]uint32, suffix string) (ds []backend.Deployment, err error) {
	service := netip.AddrPortFrom(n.HostAddr(), 11211) // no server is needed
	for i, source := range sources {
		a, err := compiler.BuildSource(ctx, source, compiler.Options{})
		if err != nil {
			return nil, err
		}
		id := uint32(measure.Workload + len(numbers))
		numbers[fused.Names[i]+suffix] = id
		ds = append(ds, stand.Deployment(a, id, map[string]netip.AddrPort{"memcached": service, "sessions": service}))
	}
	return ds, nil
}

func deployAlone(ctx context.Context, n *nic.NIC, sources [][]byte, numbers map[string]uint32, suffix string) error {
	ds, err := number(ctx, n, sources, numbers, suffix)
	for _, d := range ds {
		err = errors.Join(err, n.Deploy(ctx, d))
	}
	return err
}

func deployOne(ctx context.Context, n *nic.NIC, sources [][]byte, numbers map[string]uint32, suffix string,
	fuse func(context.Context, [][]byte) (*link.Program, error),
) error {
	ds, err := number(ctx, n, sources, numbers, suffix)
	if err != nil {
		return err
	}
	program, err := fuse(ctx, sources)
	if err != nil {
		return err
	}
	f := backend.Fused{BPF: program.BPF, Spec: program.Spec(), Serving: ds}
	for i, d := range ds {
		f.Members = append(f.Members, backend.FusedMember{Name: program.Members[i].Name, Workload: d.Workload})
	}
	return n.DeployFused(ctx, f)
}

var fusedRequests = []struct {
	about string
	packets.RPC
}{
	{"get", packets.RPC{Workload: "kv_client", Method: 0, Request: 1, Payload: "a-key", Room: 256}},
	{"set", packets.RPC{Workload: "sessions", Method: 1, Request: 1, Payload: "\x05a-key" + strings.Repeat("v", 100), Room: 256}},
	{"hello", packets.RPC{Workload: "web_server", Request: 1, Payload: "/hello", Room: 256}},
	{"index", packets.RPC{Workload: "web_server", Request: 1, Payload: "/", Room: 512}},
	{"pixels", packets.RPC{Workload: "image_transformer", Request: 1, Payload: strings.Repeat("rgba", 344), Room: api.RPCMaxPayload}},
}

// sample times runs of all forms in turn, so that other work on the machine affects all alike.
func (m *timedMember) sample(n *nic.NIC) error {
	var times [len(fusedForms)][]time.Duration
	for range fusedRuns {
		for i, frame := range m.frames {
			verdict, d, err := n.Root().Benchmark(frame, 1, nil)
			if err != nil {
				return fmt.Errorf("time %s: %w", m.name, err)
			}
			if verdict != xdpTX {
				return fmt.Errorf("%w: %s: verdict %d", measure.ErrWrong, m.name, verdict)
			}
			times[i] = append(times[i], d)
		}
	}
	for i := range times {
		m.times[i] = append(m.times[i], undisturbed(times[i]))
	}
	return nil
}

// undisturbed is the mean of the quicker half: a median is no finer than the steps of the kernel's clock.
func undisturbed(times []time.Duration) float64 {
	slices.Sort(times)
	sum := time.Duration(0)
	for _, d := range times[:len(times)/2] {
		sum += d
	}
	return float64(sum) / float64(len(times)/2)
}

// xdpTX is the kernel's number for an answer (include/uapi/linux/bpf.h).
const xdpTX = 3
