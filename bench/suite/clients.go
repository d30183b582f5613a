package suite

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// bare is what clients are compared with: a connected socket that sends the same packet again and again.
const bare = "bare socket"

// A client is a way to call the web server in a closed loop. atOnce calls are made together, and make a round.
type client struct {
	name   string
	atOnce int
	run    func(ctx context.Context, o Options, addr string, c Call) (clientRun, error)
}

type clientRun struct {
	p50, p99 float64 // µs, of a round
	rate     float64 // calls per second
}

// clients begins with what the others are compared with, for each number of calls at once. A client in another language is a
// program that takes the arguments of client/c/driver/bench.c and prints what that prints.
var clients = []client{
	{bare, 1, program("client-c/bench", "raw")},
	{"c", 1, program("client-c/bench", "client")},
	{"go", 1, goClient},
	{bare, 64, program("client-c/bench", "raw64")},
	{"c", 64, program("client-c/bench", "client64")},
}

const clientTime = 400 * time.Millisecond

// program runs one that make puts beside lambda-host.
func program(path, way string) func(context.Context, Options, string, Call) (clientRun, error) {
	return func(ctx context.Context, o Options, addr string, c Call) (r clientRun, err error) {
		binary := filepath.Join(filepath.Dir(o.LambdaHost), path)
		cmd := exec.CommandContext(ctx, binary, way, addr, strconv.Itoa(workload), strconv.Itoa(int(c.Method)),
			string(c.Body), string(c.Want), strconv.FormatInt(clientTime.Milliseconds(), 10))
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		// A process begins on the CPUs of the thread that starts it.
		if err := onCPU(clientCPU, cmd.Run); err != nil {
			return r, fmt.Errorf("run %s: %w: %s: it is built by make", binary, err, strings.TrimSpace(stderr.String()))
		}
		var calls, ns, p50, p99, p999 float64
		if _, err := fmt.Sscan(out.String(), &calls, &ns, &p50, &p99, &p999); err != nil {
			return r, fmt.Errorf("read what %s prints, %q: %w", binary, out.String(), err)
		}
		return clientRun{p50 / 1e3, p99 / 1e3, calls / ns * 1e9}, nil
	}
}

func goClient(ctx context.Context, _ Options, addr string, c Call) (clientRun, error) {
	l, err := callFor(ctx, addr, workload, []Call{c}, clientTime, clientCPU)
	if err != nil {
		return clientRun{}, err
	}
	return clientRun{l.Micros(50), l.Micros(99), l.Rate()}, nil
}

// runClients compares what the clients add to a bare socket, with the web server on the NIC.
func runClients(ctx context.Context, s *stand.Stand, o Options) ([]report.Result, error) {
	w := WebServer()
	a, err := s.Build(ctx, w.Lambda)
	if err != nil {
		return nil, err
	}
	if err := s.NIC.Deploy(ctx, stand.Deployment(a, workload, nil)); err != nil {
		return nil, err
	}
	runs := make([][]clientRun, len(clients))
	for round := range o.rounds() {
		o.log("clients: round %d of %d", round+1, o.rounds())
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
	against := map[int][]clientRun{}
	for i, c := range clients {
		if c.name == bare {
			against[c.atOnce] = runs[i]
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
				bare: samples(against[c.atOnce]),
			}))
		}
	}
	return rs
}

const sourceClients = "closed loop of one thread against the web server on the NIC; clients check every answer, the bare socket none"
