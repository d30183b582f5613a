package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/shlex"

	"github.com/lambdanic/lambdanic/internal/placement"
)

// simulate runs `lambdanic sim` and gives what it prints.
func simulate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, said, err := simulateBoth(t, args...)
	return out + said, err
}

// simulateBoth keeps what it prints from what it says beside.
func simulateBoth(t *testing.T, args ...string) (printed, said string, err error) {
	t.Helper()
	cmd := root()
	var out, beside bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&beside)
	cmd.SetArgs(append([]string{"sim"}, args...))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), beside.String(), err
}

// simulated runs `lambdanic sim` with JSON, which goes into rows, and with a plot, which has to have a text.
func simulated(t *testing.T, rows any, drawn string, args ...string) {
	t.Helper()
	plot := filepath.Join(t.TempDir(), "plot.svg")
	got, _, err := simulateBoth(t, append(args, "--json", "--plot", plot)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), rows); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if svg, err := os.ReadFile(plot); err != nil || !strings.Contains(string(svg), drawn) {
		t.Errorf("the plot: %v, %.100s", err, svg)
	}
}

func TestSimTable2(t *testing.T) {
	got, err := simulate(t, "nanoservice", "paper", "table2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`DMA .* 210\.00 +69\.75\n`, `DDIO .* 190\.20 +77\.02\n`, `L-NIC \(200ns\) .* 174\.60 +83\.90\n`} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("it printed\n%s, which has no %s", got, want)
		}
	}
}

func TestSimTree(t *testing.T) {
	args := []string{"nanoservice", "tree", "--depth", "2,3", "--interface", "lnic:100ns", "--offload", "--runs", "5", "--map", "1us", "--branches", "4"}
	var rows []simRow
	if simulated(t, &rows, "99th percentile", args...); len(rows) != 4 {
		t.Fatalf("%+v", rows)
	}
	// A level takes a map and 1.2 µs there; an answer 1.2 µs back, and 0.5 µs for each of the four.
	for i, want := range []float64{1 + 1.2 + 1 + 1.2 + 2, 1 + 1.2 + 1 + 1.2} {
		if r := rows[i]; r.Depth != 2 || r.P50 != want || len(r.Finish) != 5 {
			t.Errorf("%+v, want %v µs", r, want)
		}
	}
	if got, err := simulate(t, append(args, "--csv")...); err != nil || strings.Count(got, "\n") != 5 || !strings.HasPrefix(got, "name,hosts,depth,") {
		t.Errorf("%v:\n%s", err, got)
	}
}

func TestSimLoad(t *testing.T) {
	args := []string{"nanoservice", "load", "--dispatch", "jbsq:2,central", "--requests", "20000"}
	var rows []simLoadRow
	if simulated(t, &rows, "utilisation of the cores", append(args, "--utilisation", "0.3,0.6")...); len(rows) != 4 {
		t.Fatalf("%+v", rows)
	}
	for i, want := range []simLoadRow{{Dispatch: "jbsq:2", Load: "0.3"}, {Dispatch: "jbsq:2", Load: "0.6"}, {Dispatch: "central", Load: "0.3"}, {Dispatch: "central", Load: "0.6"}} {
		// Sixteen cores with so much to do serve nearly all at once: 1 µs, and 1.2 µs there and back.
		if r := rows[i]; r.Dispatch != want.Dispatch || r.Load != want.Load || r.Mean < 3.3 || r.Mean > 3.7 || r.P50 > r.P99 || r.P99 > r.P999 {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
	got, err := simulate(t, append(args, "--clients", "1,2", "--network", "ndp", "--service", "1us", "--csv")...)
	if err != nil || strings.Count(got, "\n") != 5 || !strings.Contains(got, "\njbsq:2,2 clients,") {
		t.Errorf("%v:\n%s", err, got)
	}
}

func TestSimOrchestrator(t *testing.T) {
	args := []string{"orchestrator", "--servers", "100,200", "--lambdas", "1,10", "--overloaded", "0.1", "--silent", "0.02"}
	plot := filepath.Join(t.TempDir(), "plot.svg")
	var rows []simOrchestratorRow
	if simulated(t, &rows, "10 lambdas a NIC", args...); len(rows) != 4 {
		t.Fatalf("%+v", rows)
	}
	for i, want := range []simOrchestratorRow{{NICs: 400, Lambdas: 1}, {NICs: 400, Lambdas: 10}, {NICs: 800, Lambdas: 1}, {NICs: 800, Lambdas: 10}} {
		r := rows[i]
		if r.NICs != want.NICs || r.Lambdas != want.Lambdas || r.Needed != 20*float64(r.NICs) || r.Decisions["host starvation"] != r.NICs/20 || r.Silent != uint64(r.NICs/50) {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
	if got, err := simulate(t, append(args, "--csv")...); err != nil || strings.Count(got, "\n") != 5 || !strings.HasPrefix(got, "servers,nics,lambdas_per_nic,") {
		t.Errorf("%v:\n%s", err, got)
	}
	for want, args := range map[string]string{
		"servers: 0 is not between 1 and":           "--servers 0",
		"at most 250000000 lambdas in all":          "--servers 100000 --lambdas 1000",
		"no decision was timed: take more servers":  "--servers 10 --overloaded 0 --plot " + plot,
		"--plot x.png: it is drawn as SVG: name it": "--plot x.png",
	} {
		if got, err := simulate(t, append([]string{"orchestrator"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %s, want %s", args, err, got, want)
		}
	}
}

func TestSimWarns(t *testing.T) {
	const load = "nanoservice load --service 1us --dispatch jbsq:1 --interface dma --requests 20000 --utilisation "
	if got, err := simulate(t, strings.Fields(load+"0.8 --json")...); err != nil || !strings.Contains(got, "warning: jbsq:1 at load 0.8: requests come faster") || !strings.Contains(got, `"overload": 1.3`) {
		t.Errorf("an overload is not told: %v, %s", err, got)
	}
	if got, err := simulate(t, strings.Fields(load+"0.1")...); err != nil || strings.Contains(got, "warning") {
		t.Errorf("%v, %s", err, got)
	}
}

func TestSimRefuses(t *testing.T) {
	for want, args := range map[string]string{
		`experiment "figure7": there are table2, figure5 and figure6`: "paper figure7",
		`--interface: interface "pcie": it has to be dma`:             "tree --interface pcie",
		`--interface: interface "lnic:x": "x" is not a time`:          "tree --interface lnic:x",
		`--map: distribution "fast": "fast" is not a time`:            "tree --map fast",
		`--branches: "0" is not a number from 1 to`:                   "tree --branches 0",
		`--wire: "1" is not a time with a unit: write 800ns or 1.5us`: "tree --wire 1",
		`--message-bytes is for links and a switch: give --network`:   "tree --message-bytes 100",
		`--think is for closed loads: give --clients`:                 "load --think 1us",
		`--reply-bytes is for links and a switch: give --network`:     "load --reply-bytes 100",
		`--clients: 0 is not positive`:                                "load --clients 0",
		`--csv, --json: results are printed as one or the other`:      "tree --csv --json --runs 1 --depth 1",
		`the simulated time exceeds 106 days`:                         "load --service 500us --utilisation 1e-9 --dispatch central",
		`--plot x.png: it is drawn as SVG: name it x.svg`:             "tree --runs 1 --depth 1 --plot x.png",
		`--reduce: the time -1us is not between`:                      "tree --reduce=-1us",
		`hosts: 0 is not between 1 and`:                               "tree --hosts 0 --runs 1",
		`depth: 99 is not between 1 and`:                              "tree --depth 99 --runs 1",
		`0 runs of 3 trees: there is nothing to do`:                   "tree --runs 0",
		`dispatch "fifo": it has to be rss,`:                          "load --dispatch fifo",
		`--network: transport "tcp": it has to be`:                    "load --network tcp",
		`rss: utilisation: 1.5 is not between 0 and 1`:                "load --utilisation 1.5",
		`if any flags in the group [utilisation clients]`:             "load --utilisation 0.5 --clients 1",
		`there is no load to simulate`:                                "load --dispatch=",
		`rss: rate: 1000 bit/s is not between`:                        "load --network ndp --rate 0.000001",
		`--quantum: "x" is not a time`:                                "load --quantum x",
		`write the plot: open /no/such/dir`:                           "tree --depth 1 --runs 1 --plot /no/such/dir/x.svg",
	} {
		if got, err := simulate(t, append([]string{"nanoservice"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %s, want %s", args, err, got, want)
		}
	}
}

// docCommand runs a command of the documentation. One that is followed by "# fails" has to, and > writes a file. Solvers may be missing.
func docCommand(t *testing.T, command string, short []string) {
	t.Helper()
	args, err := shlex.Split(command) // without comments
	if err != nil {
		t.Fatal(err)
	}
	file := ""
	if n := len(args); n > 2 && args[n-2] == ">" {
		args, file = args[:n-2], args[n-1]
	}
	got, said, err := simulateBoth(t, append(args, short...)...)
	if fails := strings.Contains(command, "# fails"); fails != (err != nil) && !errors.Is(err, placement.ErrNoSolver) {
		t.Errorf("lambdanic sim %s: %v\n%s%s", command, err, got, said)
	}
	if file != "" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The documentation shows the plots that its commands draw.
func TestSimDocPlots(t *testing.T) {
	text, err := os.ReadFile("../../docs/simulators.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\]\(plots/(\S+)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat("../../docs/plots/" + name[1]); err != nil {
			t.Error(err)
		}
	}
	for _, figure := range []string{"table2", "figure5"} {
		drawn := filepath.Join(t.TempDir(), "plot.svg")
		if got, err := simulate(t, "nanoservice", "paper", figure, "--plot", drawn); err != nil {
			t.Fatal(err, got)
		}
		got, _ := os.ReadFile(drawn)
		if want, err := os.ReadFile("../../docs/plots/nanoservice-" + figure + ".svg"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/plots/nanoservice-%s.svg is not what `lambdanic sim nanoservice paper %s` draws (%v)", figure, figure, err)
		}
	}
}

// Every command of docs/simulators.md works; with fewer runs, here.
func TestSimDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/simulators.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	// Files of CSV and YAML are shown with their names as the first line.
	for _, file := range regexp.MustCompile("(?ms)^```(?:csv|yaml)\n(# (\\S+\\.(?:csv|yml))\n.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if err := os.WriteFile(file[2], []byte(file[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := regexp.MustCompile(`(?m)^lambdanic sim (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 3 {
		t.Fatalf("only %d commands", len(commands))
	}
	for _, c := range commands {
		short := []string{"--runs", "2"}
		switch {
		case strings.HasPrefix(c[1], "cluster "), strings.HasPrefix(c[1], "place "):
			short = nil // they are quick, or say how to be
		case strings.Contains(c[1], " load "):
			short = []string{"--requests", "2000"}
		case strings.HasPrefix(c[1], "orchestrator"):
			short = []string{"--intervals", "4"}
		}
		docCommand(t, c[1], short)
	}
	for _, c := range regexp.MustCompile(`(?m)^lambdanic othello (.*)$`).FindAllStringSubmatch(string(text), -1) {
		args := strings.Fields(c[1])
		if args[0] == "bench" {
			args = append(args, "--positions", "2", "--depth", "3")
		}
		if _, got, err := othelloRun(t, "", args...); err != nil {
			t.Errorf("lambdanic othello %s: %v\n%s", c[1], err, got)
		}
	}
}
