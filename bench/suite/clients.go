package suite

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// Clients are compared with a connected socket in the same language that sends the same packet again and again.
const (
	bare       = "bare socket"
	barePython = "bare socket in python"
	bareNode   = "bare socket in node"
)

// A client is a way to call the web server in a closed loop. atOnce calls are made together, and make a round.
type client struct {
	name    string
	against string // "" for the base of the comparison
	atOnce  int
	run     runClient
}

type runClient func(ctx context.Context, o measure.Options, addr string, c measure.Call) (clientRun, error)

type clientRun struct {
	p50, p99 float64 // µs, of a round
	rate     float64 // calls per second
}

// A client in another language is a program that takes the arguments of client/c/driver/bench.c and prints what that prints.
var clients = []client{
	{bare, "", 1, cProgram("raw")},
	{"c", bare, 1, cProgram("client")},
	{"go", bare, 1, goClient},
	{bare, "", 64, cProgram("raw64")},
	{"c", bare, 64, cProgram("client64")},
	{barePython, "", 1, pythonProgram("raw")},
	{"python", barePython, 1, pythonProgram("client")},
	{"python_asyncio", barePython, 1, pythonProgram("asyncio")},
	{barePython, "", 64, pythonProgram("raw64")},
	{"python", barePython, 64, pythonProgram("client64")},
	{"python_asyncio", barePython, 64, pythonProgram("asyncio64")},
	{bareNode, "", 1, nodeProgram("raw")},
	{"node", bareNode, 1, nodeProgram("client")},
	{bareNode, "", 64, nodeProgram("raw64")},
	{"node", bareNode, 64, nodeProgram("client64")},
}

const clientTime = 400 * time.Millisecond

// cProgram is the program that make puts beside lambda-host.
func cProgram(way string) runClient {
	return func(ctx context.Context, o measure.Options, addr string, c measure.Call) (clientRun, error) {
		return runProgram(ctx, addr, c, filepath.Join(filepath.Dir(o.LambdaHost), "client-c/bench"), way)
	}
}

// pythonProgram needs nothing to be built.
func pythonProgram(way string) runClient {
	return func(ctx context.Context, o measure.Options, addr string, c measure.Call) (clientRun, error) {
		dir := filepath.Join(o.Lambdas, "../client/python")
		return runProgram(ctx, addr, c, "env", "PYTHONPATH="+filepath.Join(dir, "src"), "python3", filepath.Join(dir, "bench/bench.py"), way)
	}
}

// nodeProgram is built by make -C client/node, which make bench does.
func nodeProgram(way string) runClient {
	return func(ctx context.Context, o measure.Options, addr string, c measure.Call) (clientRun, error) {
		return runProgram(ctx, addr, c, "node", filepath.Join(o.Lambdas, "../client/node/dist/bench/bench.js"), way)
	}
}

func runProgram(ctx context.Context, addr string, c measure.Call, command ...string) (r clientRun, err error) {
	command = append(command, addr, strconv.Itoa(measure.Workload), strconv.Itoa(int(c.Method)),
		string(c.Body), string(c.Want), strconv.FormatInt(clientTime.Milliseconds(), 10))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	// A process inherits the CPUs of the thread that starts it.
	if err := measure.OnCPU(measure.ClientCPU, cmd.Run); err != nil {
		return r, fmt.Errorf("run %s: %w: %s: make bench builds what is missing", command, err, strings.TrimSpace(stderr.String()))
	}
	var calls, ns, p50, p99, p999 float64
	if _, err := fmt.Sscan(out.String(), &calls, &ns, &p50, &p99, &p999); err != nil {
		return r, fmt.Errorf("read what %s prints, %q: %w", command, out.String(), err)
	}
	return clientRun{p50 / 1e3, p99 / 1e3, calls / ns * 1e9}, nil
}

func goClient(ctx context.Context, _ measure.Options, addr string, c measure.Call) (clientRun, error) {
	l, err := measure.CallFor(ctx, addr, []measure.Call{c}, clientTime, measure.ClientCPU)
	if err != nil {
		return clientRun{}, err
	}
	return clientRun{l.Micros(50), l.Micros(99), l.Rate()}, nil
}

// runClients compares what the clients add to a bare socket, with the web server on the NIC.
func runClients(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	w := measure.WebServer()
	a, err := s.Build(ctx, w.Lambda)
	if err != nil {
		return nil, err
	}
	if err := s.NIC.Deploy(ctx, stand.Deployment(a, measure.Workload, nil)); err != nil {
		return nil, err
	}
	runs := make([][]clientRun, len(clients))
	for round := range o.Rounds {
		o.Log("clients: round %d of %d", round+1, o.Rounds)
		for i := range clients {
			if round%2 == 1 {
				i = len(clients) - 1 - i
			}
			r, err := clients[i].run(ctx, o, s.NIC.Addr().String(), w.Calls[0])
			if err != nil {
				return nil, fmt.Errorf("client %s: %w", clients[i].name, err)
			}
			runs[i] = append(runs[i], r)
		}
	}
	return clientResults(runs), nil
}

func clientResults(runs [][]clientRun) (rs []report.Result) {
	for i, c := range clients {
		j := slices.IndexFunc(clients, func(other client) bool { return other.name == c.against && other.atOnce == c.atOnce })
		if j < 0 {
			continue
		}
		for _, f := range []struct {
			name, unit string
			better     report.Better
			of         func(clientRun) float64
		}{
			{"p50", "µs", report.Lower, func(r clientRun) float64 { return r.p50 }},
			{"p99", "µs", report.Lower, func(r clientRun) float64 { return r.p99 }},
			{"rps", "1/s", report.Higher, func(r clientRun) float64 { return r.rate }},
		} {
			samples := func(runs []clientRun) (s report.Samples) {
				for _, r := range runs {
					s = append(s, f.of(r))
				}
				return s
			}
			name := fmt.Sprintf("%s.%d_at_once.%s", c.name, c.atOnce, f.name)
			rs = append(rs, report.Compare(name, f.unit, f.better, sourceClients, samples(runs[i]), map[string]report.Samples{
				c.against: samples(runs[j]),
			}))
		}
	}
	return rs
}

const sourceClients = "closed loop of one thread against the web server on the NIC; clients check every answer, bare sockets none"
