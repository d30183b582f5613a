// Package suite has the benchmark suites: what `lambdanic bench` runs.
package suite

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/bench/echo"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// Options of a run.
type Options struct {
	stand.Config
	Rounds   int       // alternating runs, of which medians are taken; 0 means 5
	Seed     uint64    // of the first random program
	Progress io.Writer // is told what is being done; nil for nobody
	part     string    // of the suite, "" for all
}

func (o Options) log(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format+"\n", args...)
	}
}

func (o Options) rounds() int {
	if o.Rounds == 0 {
		return 5
	}
	return o.Rounds
}

// A Suite measures one thing.
type Suite struct {
	Name  string
	About string
	Parts []string // what NAME/PART runs alone
	run   func(ctx context.Context, s *stand.Stand, o Options) ([]report.Result, error)
}

// All lists the suites.
func All() []Suite {
	return []Suite{
		{"echo", "the limit: a bare XDP_TX echo on the NIC's own pair", nil, runEcho},
		{"dispatch", "a packet's cost with 1,000 lambdas deployed against one", nil, runDispatch},
		{"replies", "replies of many packets: pulled against multiplied", nil, runReplies},
		{"deploy", "from source to the first answer: compiler and NIC alone, and by the API of a daemon", nil, runDeploy},
		{"swap", "from one built revision to the next: the NIC alone, and by the API of a daemon", nil, runSwap},
		{"gateway", "HTTP: web_server on the NIC through the gateway, a bare net/http server and nginx", nil, runGateway},
		{"clients", "what the clients in C, Go, Python and Node.js add to a bare socket", nil, runClients},
		{"compiler", "ordinary C: what loads, how fast it runs, how long compiling takes", compilerParts.names(), runCompiler},
		{"transport", "messages of many packets, 256 KiB there and 64 KiB back: the NIC against a process, and where packets are lost", nil, runTransport},
		{"rdma", "1 MiB into a lambda's memory: by RDMA against λ-RPC", nil, runRDMA},
		{"web_server", "pages: the NIC against a process", nil, compare(WebServer)},
		{"kv_client", "memcached: the NIC against a process", nil, compare(KVClient)},
		{"image_transformer", "256x256 images: the NIC against a process", nil, compare(ImageTransformer)},
	}
}

// Run runs the suite of that name.
func Run(ctx context.Context, name string, o Options) (out report.Suite, err error) {
	suite, part, partial := strings.Cut(name, "/")
	all := All()
	i := slices.IndexFunc(all, func(s Suite) bool { return s.Name == suite && (!partial || slices.Contains(s.Parts, part)) })
	if i < 0 {
		var names []string
		for _, s := range all {
			names = append(names, s.Name)
			for _, part := range s.Parts {
				names = append(names, s.Name+"/"+part)
			}
		}
		return out, fmt.Errorf("suite %q does not exist: choose one of %s", name, strings.Join(names, ", "))
	}
	o.part = part
	s, err := stand.New(ctx, o.Config)
	if err != nil {
		return out, err
	}
	defer func() {
		if closed := s.Close(); err == nil {
			err = closed
		}
	}()
	out = report.Suite{Suite: name, Machine: report.ThisMachine("veth")}
	out.Results, err = all[i].run(ctx, s, o)
	return out, err
}

// generatorCPUs are the sets of CPUs from which load is offered: one, which leaves the others to the server, and all.
func generatorCPUs() [][]int {
	sets := [][]int{{0}}
	if n := runtime.NumCPU(); n > 1 {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		sets = append(sets, all)
	}
	return sets
}

// flavours are the ways in which a side is run; the first is the one whose latency is measured.
func flavours(side string) (fs []stand.Flavour) {
	if side == NIC {
		return []stand.Flavour{{Name: NIC}}
	}
	for _, f := range stand.Flavours {
		if f.Spin == (side == Spinning) {
			fs = append(fs, f)
		}
	}
	return fs
}

// EchoRate measures the limit once: a bare echo in the place of the NIC program, under the load of a web server. It is the
// best over the sets of CPUs that generate.
func EchoRate(ctx context.Context, s *stand.Stand) (best float64, err error) {
	a, err := echo.Attach(s.Fast)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	g, err := gen.New(s.Fast, gen.Options{})
	if err != nil {
		return 0, err
	}
	defer g.Close()
	for _, cpus := range generatorCPUs() {
		l := *WebServer().Open
		l.CPUs = cpus
		r, err := g.Run(ctx, l)
		if err != nil {
			return 0, err
		}
		best = max(best, r.Rate())
	}
	return best, nil
}

func runEcho(ctx context.Context, s *stand.Stand, o Options) ([]report.Result, error) {
	var rates report.Samples
	for round := range o.rounds() {
		o.log("echo: round %d of %d", round+1, o.rounds())
		r, err := EchoRate(ctx, s)
		if err != nil {
			return nil, err
		}
		rates = append(rates, r)
	}
	return []report.Result{report.Compare("xdp_tx_pps", "1/s", report.Higher, sourceOpen, rates, nil)}, nil
}

const (
	sourceOpen   = "open loop from BPF_PROG_TEST_RUN live frames; replies counted where they arrive"
	sourceClosed = "closed loop of one client; every answer checked"
	sourceCPU    = "scheduler's account of receive threads and server process"
)

// compare makes a suite of one work.
func compare(work func() Work) func(context.Context, *stand.Stand, Options) ([]report.Result, error) {
	return func(ctx context.Context, s *stand.Stand, o Options) ([]report.Result, error) {
		w := work()
		a, err := s.Build(ctx, w.Lambda)
		if err != nil {
			return nil, err
		}
		m, err := Measure(ctx, s, a, w, o.rounds(), o.log)
		if err != nil {
			return nil, err
		}
		return m.Results(), nil
	}
}

// Results are the figures of the NIC against those of the others.
func (m *Measurement) Results() (rs []report.Result) {
	for _, f := range []struct {
		name, unit string
		better     report.Better
		source     string
		of         func(*Figures) report.Samples
	}{
		{"p50", "µs", report.Lower, sourceClosed, func(f *Figures) report.Samples { return f.P50 }},
		{"p99", "µs", report.Lower, sourceClosed, func(f *Figures) report.Samples { return f.P99 }},
		{"p99.9", "µs", report.Lower, sourceClosed, func(f *Figures) report.Samples { return f.P999 }},
		{"p50_spinning_client", "µs", report.Lower, sourceClosed, func(f *Figures) report.Samples { return f.P50Spinning }},
		{"closed_rps", "1/s", report.Higher, sourceClosed, func(f *Figures) report.Samples { return f.ClosedRate }},
		{"open_rps", "1/s", report.Higher, sourceOpen, func(f *Figures) report.Samples { return f.OpenRate }},
		{"cpu_per_request", "ns", report.Lower, sourceCPU, func(f *Figures) report.Samples { return f.CPU }},
	} {
		if len(f.of(m.Sides[NIC])) == 0 {
			continue
		}
		rs = append(rs, report.Compare(m.Work.Lambda+"."+f.name, f.unit, f.better, f.source, f.of(m.Sides[NIC]), map[string]report.Samples{
			Process: f.of(m.Sides[Process]), Spinning: f.of(m.Sides[Spinning]),
		}))
	}
	return rs
}
