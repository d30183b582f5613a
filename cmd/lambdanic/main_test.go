package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/shlex"
	"github.com/openfaas/faas-provider/logs"
	"github.com/openfaas/faas-provider/types"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// fakeDaemon answers at an instance's socket.
func fakeDaemon(t *testing.T, h http.Handler) (run func(args ...string) (string, error)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ln")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p, err := daemon.NewPaths("t", dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(p.Run, 0o700); err != nil {
		t.Fatal(err)
	}
	if h != nil {
		l, err := net.Listen("unix", p.Socket())
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: h}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	return func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{"--instance", "t", "--data-dir", dir, "--run-dir", dir}, args...))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
}

func TestWithoutDaemonSaysWhatToDo(t *testing.T) {
	run := fakeDaemon(t, nil)
	for _, args := range [][]string{{"list"}, {"describe", "x"}, {"remove", "x"}, {"stats"}, {"invoke", "x"}, {"deploy", "--image", "x@y"}} {
		if _, err := run(args...); !errors.Is(err, daemon.ErrDown) || !strings.Contains(err.Error(), "`lambdanic up -d --name t --data-dir ") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestDeploySendsWhatTheFlagsSay(t *testing.T) {
	var got types.FunctionDeployment
	mux := http.NewServeMux()
	mux.HandleFunc("POST /system/functions", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(api.Function{
			Name: got.Service, Target: api.TargetProcess, Refused: []api.Refusal{{Target: api.TargetNIC, Reason: "line 7"}},
		})
	})
	run := fakeDaemon(t, mux)
	out, err := run("deploy", "--image", "web@sha256:0", "--target", "process", "--service", "memcached=192.0.2.1:11211",
		"--env", "a=b", "-n", "tenant")
	if err != nil || !strings.Contains(out, "web serves on process,") || !strings.Contains(out, "warning: web serves on process rather than nic: line 7") {
		t.Fatalf("%q (%v)", out, err)
	}
	if got.Service != "web" || got.Namespace != "tenant" || got.EnvVars["a"] != "b" ||
		(*got.Annotations)[api.AnnotationTargets] != "process" || (*got.Annotations)[api.AnnotationService+"memcached"] != "192.0.2.1:11211" {
		t.Errorf("sent %+v", got)
	}
}

// Several directories are several functions, in their order.
func TestDeploySeveral(t *testing.T) {
	var deployed []string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /system/node", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(api.Node{}) })
	mux.HandleFunc("POST /system/artifacts", func(w http.ResponseWriter, r *http.Request) {
		name := []string{"one", "two"}[len(deployed)]
		_ = json.NewEncoder(w).Encode(api.Artifact{Image: name + "@sha256:0", Spec: api.Spec{Name: name}})
	})
	mux.HandleFunc("POST /system/functions", func(w http.ResponseWriter, r *http.Request) {
		var f types.FunctionDeployment
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			t.Error(err)
		}
		deployed = append(deployed, f.Service)
		_ = json.NewEncoder(w).Encode(api.Function{Name: f.Service, Target: api.TargetNIC})
	})
	run := fakeDaemon(t, mux)
	dirs := []string{"../../lambdas/web_server", "../../lambdas/kv_client"}
	if out, err := run(append([]string{"deploy"}, dirs...)...); err != nil || strings.Join(deployed, " ") != "one two" ||
		!strings.Contains(out, "one serves") || !strings.Contains(out, "two serves") {
		t.Errorf("%v, %q, %v", deployed, out, err)
	}
	if _, err := run(append([]string{"deploy", "--name", "both"}, dirs...)...); err == nil || !strings.Contains(err.Error(), "--name names one function") {
		t.Errorf("two by one name: %v", err)
	}
}

func TestInvoke(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/function/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.HeaderDuration, "0.5")
		_, _ = w.Write([]byte(r.URL.Query().Get("method") + r.Header.Get("Content-Type")))
	})
	mux.HandleFunc("/function/broken", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "why", http.StatusBadGateway) })
	run := fakeDaemon(t, mux)
	if out, err := run("invoke", "echo", "--method", "0x10"); err != nil || out != "16" {
		t.Errorf("%q (%v)", out, err)
	}
	dir := t.TempDir()
	in, file := filepath.Join(dir, "in.png"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run("invoke", "echo", "--file", in, "--out", file); err != nil || out != "" {
		t.Errorf("%q (%v)", out, err)
	}
	if saved, err := os.ReadFile(file); err != nil || string(saved) != "0image/png" {
		t.Errorf("%q (%v)", saved, err)
	}
	out, err := run("invoke", "echo", "--json")
	var r result
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Status != 200 || *r.Text != "0" {
		t.Errorf("%q (%v)", out, err)
	}
	if _, err := run("invoke", "broken", "--out", file); err == nil || !strings.Contains(err.Error(), "502") || !strings.Contains(err.Error(), "why") {
		t.Errorf("%v", err)
	}
	if saved, _ := os.ReadFile(file); string(saved) != "0image/png" {
		t.Error("a call that failed changed the file of an earlier answer")
	}
	if _, err := run("invoke", "echo", "--method", "x"); err == nil {
		t.Error("method x was taken")
	}
}

func TestRemoveGoesOn(t *testing.T) {
	var removed []string
	mux := http.NewServeMux()
	mux.HandleFunc("DELETE /system/functions", func(w http.ResponseWriter, r *http.Request) {
		var body types.DeleteFunctionRequest
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if body.FunctionName == "nope" {
			http.Error(w, "no such function", http.StatusNotFound)
			return
		}
		removed = append(removed, body.Namespace+"/"+body.FunctionName)
	})
	run := fakeDaemon(t, mux)
	out, err := run("remove", "a", "nope", "b.tenant", "-n", "mine")
	if err == nil || !strings.Contains(err.Error(), "no such function") || !strings.Contains(out, "b.tenant is removed") {
		t.Errorf("%q (%v)", out, err)
	}
	if want := []string{"mine/a", "tenant/b"}; !slices.Equal(removed, want) {
		t.Errorf("removed %v, want %v", removed, want)
	}
}

func TestListOfWhatDoesNotRun(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /system/functions", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]api.Function{{Name: "s", Namespace: "default", State: api.StateError}})
	})
	if out, err := fakeDaemon(t, mux)("list"); err != nil || strings.Contains(out, "invalid") {
		t.Errorf("%q (%v)", out, err)
	}
}

// Where a namespace has no functions, its name may be misspelt.
func TestListOfNothing(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /system/functions", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode([]api.Function{}) })
	run := fakeDaemon(t, mux)
	for _, c := range []struct {
		args []string
		note bool
	}{{nil, false}, {[]string{"-n", "nosuch"}, true}, {[]string{"-n", "nosuch", "--json"}, false}} {
		out, err := run(append([]string{"list"}, c.args...)...)
		if err != nil || strings.Contains(out, "there are no functions in namespace nosuch: `lambdanic namespace list`") != c.note {
			t.Errorf("%v: %q (%v)", c.args, out, err)
		}
	}
}

func TestStatsOfSome(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /system/stats", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]api.FunctionStats{{Name: "s", Namespace: "default"}, {Name: "s", Namespace: "tenant"}, {Name: "u", Namespace: "default"}})
	})
	run := fakeDaemon(t, mux)
	for _, tc := range []struct {
		args []string
		want []string // NAME and NAMESPACE of each row
	}{
		{nil, []string{"s default", "s tenant", "u default"}},
		{[]string{"s"}, []string{"s default"}},
		{[]string{"s.tenant", "u"}, []string{"s tenant", "u default"}},
		{[]string{"-n", "tenant"}, []string{"s tenant"}},
	} {
		out, err := run(append([]string{"stats"}, tc.args...)...)
		var got []string
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); f[0] != "NAME" {
				got = append(got, strings.Join(f[:2], " "))
			}
		}
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%v: %q (%v), want %q", tc.args, got, err, tc.want)
		}
	}
	if _, err := run("stats", "u.tenant"); err == nil || !strings.Contains(err.Error(), "tenant/u") {
		t.Errorf("%v", err)
	}
}

// --help and the documentation say in the same words what the columns count.
func TestStatsColumnsAreExplained(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /system/stats", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]api.FunctionStats{{Name: "s", Namespace: "default", Target: api.TargetNIC, Stats: api.Stats{
			Requests: 1, Replies: 2, Errors: 3, Drops: 4, Calls: 5, Faults: 6, Late: 7, OverQuota: 8, OverShare: 9, OverBandwidth: 12, BadTags: 10, Replayed: 11, Samples: 2, SampledNS: 3000,
			FaultsBy: api.FaultsBy{api.FaultTime: 6}, Histogram: [32]uint64{10: 1, 11: 1},
		}}})
	})
	run := fakeDaemon(t, mux)
	table, err := run("stats")
	want := "NAME NAMESPACE TARGET REQUESTS REPLIES ERRORS DROPS CALLS FAULTS LATE OVER QUOTA OVER SHARE OVER BANDWIDTH BAD TAGS REPLAYED MEAN P50 P99 FAULTED BY s default nic 1 2 3 4 5 6 7 8 9 12 10 11 1.5µs <2.048µs <4.096µs 6 time"
	if got := strings.Join(strings.Fields(table), " "); err != nil || got != want {
		t.Errorf("%q (%v), want %q", got, err, want)
	}
	help, err := run("stats", "--help")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(help), " ")
	for _, c := range statsColumns {
		if !strings.Contains(text, c.head+" "+c.help) {
			t.Errorf("--help does not explain %s", c.head)
		}
		if row := "| " + c.head + " | " + c.help + " |\n"; !strings.Contains(string(docs), row) {
			t.Errorf("docs/operations.md lacks %q", row)
		}
	}
}

func TestBadFlags(t *testing.T) {
	run := fakeDaemon(t, nil)
	for _, args := range [][]string{
		{"up", "--mode", "turbo"}, {"up", "--unknown", "maybe"}, {"up", "--instance", "A"}, {"up", "extra"}, {"up", "--listen", "foo"},
		{"up", "--nic-budget", "80"}, {"up", "--nic-budget", "0%"}, {"up", "--nic-budget", "0.00001%"}, {"up", "--nic-budget", "101%"},
		{"deploy", "-f", "x.yml", "--name", "y"}, {"deploy", "a", "--image", "b@c"}, {"invoke"}, {"remove"},
	} {
		if out, err := run(args...); err == nil {
			t.Errorf("%v: %q", args, out)
		}
	}
}

func TestParseBandwidth(t *testing.T) {
	for text, want := range map[string]uint64{"8Gbit": 8e9, "2.5 Gbit/s": 25e8, "10Mbit": 10e6, "10Tbit": 10e12, "none": 0} {
		if got, err := parseBandwidth(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

// Errors on the command line come with the remedy.
func TestInvokeSaysWhereTheRequestGoes(t *testing.T) {
	run := fakeDaemon(t, nil)
	if _, err := run("invoke", "web_server", "/about"); err == nil || !strings.Contains(err.Error(), `"/about" is one argument too many`) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("got %v", err)
	}
}

func TestBadFlagsSayWhatIsRight(t *testing.T) {
	run := fakeDaemon(t, nil)
	file := filepath.Join(t.TempDir(), "x.c")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"NAME[.NAMESPACE]":        {"invoke"},
		"NAME[.NAMESPACE]...":     {"remove"},
		"--target and --targets":  {"deploy", "--image", "x@y", "--target", "nic", "--targets", "process"},
		"either --data or --file": {"invoke", "x", "--data", "a", "--file", "b"},
		"write it as 100us, 20ms": {"invoke", "x", "--timeout", "y"},
		"name the directory":      {"build", file},
		"`lambdanic new`":         {"build", t.TempDir()},
	} {
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// versionRE is the pattern of semantic versioning 2.0.0, simplified.
var versionRE = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?\n$`)

func TestUnknownCommand(t *testing.T) {
	run := fakeDaemon(t, nil)
	for words, hint := range map[string]string{
		"lst": "did you mean list", "xyzzyxyzzy": "lambdanic --help", "ik lst": "did you mean list", "rdma region xyzzyxyzzy": "lambdanic rdma region --help",
	} {
		if _, err := run(strings.Fields(words)...); err == nil || !strings.Contains(err.Error(), "unknown command") || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", words, err)
		}
	}
	if out, err := run(); err != nil || !strings.Contains(out, "Usage:") {
		t.Errorf("no command: %q (%v)", out, err)
	}
	for _, words := range [][]string{{"--version"}, {"version"}} {
		if out, err := run(words...); err != nil || !versionRE.MatchString(out) {
			t.Errorf("%v: %q (%v)", words, out, err)
		}
	}
}

func TestDownWithoutInstance(t *testing.T) {
	run := fakeDaemon(t, nil)
	if out, err := run("down", "--instance", "nosuch"); err != nil || !strings.Contains(out, "there is no instance nosuch") {
		t.Errorf("%q (%v)", out, err)
	}
}

// For a misspelt flag the nearest of the command is suggested, for a negative number the remedy, and for a bad value what the flag takes.
func TestFlagErrors(t *testing.T) {
	run := fakeDaemon(t, nil)
	for want, args := range map[string][]string{
		"unknown flag: --timeut: did you mean --timeout?":       {"invoke", "x", "--timeut", "5s"},
		"unknown flag: --detatch: did you mean --detach?":       {"up", "--detatch"},
		"unknown flag: --jsno: did you mean --json?":            {"list", "--jsno"}, // of all commands
		"unknown flag: --namespac: did you mean --namespace?":   {"object", "read", "x", "y", "--namespac=z"},
		"unknown flag: --xyzzyx: `lambdanic list --help`":       {"list", "--xyzzyx"},
		"unknown shorthand flag: 'q' in -q: `lambdanic list -":  {"list", "-q"},
		"did you mean --peer or --peer-qpn?":                    {"rdma", "qp", "add", "x", "--pee", "1"}, // and not --psn
		"in -timeout: did you mean --timeout?":                  {"invoke", "x", "-timeout", "5s"},
		"`lambdanic object write ... -- -17`":                   {"object", "write", "x", "y", "-17"},
		`--port: "70000" is not a whole number from 0 to 65535`: {"ik", "attach", "x", "--port", "70000"},
		`--port: "x" is not a whole number from 0 to 65535`:     {"ik", "attach", "x", "--port", "x"},
		`--pid: "abc" is not a whole number`:                    {"ik", "attach", "x", "--port", "1", "--pid", "abc"},
		"0 is not a process":                                    {"ik", "attach", "x", "--port", "1", "--pid", "0"},
		`--json: "maybe" is neither true nor false`:             {"list", "--json=maybe"},
		"--name and --instance are one and the same":            {"up", "--name", "nosuch", "--instance", "another"},
	} {
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	if _, err := run("up", "--ready-f"); err == nil || strings.Contains(err.Error(), "--"+daemon.ReadyFlag) {
		t.Errorf("a hidden flag is shown: %v", err)
	}
}

// Each flag's value has a descriptive name, and durations show their default with a unit.
func TestFlagsShowTheirValues(t *testing.T) {
	durations := 0
	commands(root(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			if f.Hidden || f.Value.Type() == "bool" {
				return
			}
			if name == "" || name == "stringToString" {
				t.Errorf("%s --%s: the value's name is %q", cmd.CommandPath(), f.Name, name)
			}
			own, ok := f.Value.(interface{ Get() any })
			if ok {
				_, ok = own.Get().(*api.Duration)
			}
			if !ok && f.Value.Type() != "duration" {
				return
			}
			durations++
			help := cmd.LocalFlags().FlagUsages()
			if shown := "(default " + f.DefValue + ")"; name != "duration" || !strings.Contains(help, shown) && !strings.Contains(usage, f.DefValue+" for all") {
				t.Errorf("%s --%s: the value is %q, and its default %s does not stand in\n%s", cmd.CommandPath(), f.Name, name, f.DefValue, help)
			}
		})
	})
	if durations < 3 {
		t.Errorf("looked at %d durations only", durations)
	}
}

// A name that no function has or had is an error; with --follow, the command may wait for it.
func TestLogsOfWhatThereIsNot(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /system/functions", func(w http.ResponseWriter, r *http.Request) {
		if in := r.URL.Query().Get("namespace"); in != "default" {
			t.Errorf("namespace %q", in)
		}
		_ = json.NewEncoder(w).Encode([]api.Function{{Name: "quiet", Namespace: "default"}})
	})
	mux.HandleFunc("GET /system/logs", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("name") == "removed" && !q.Has("since") {
			_ = json.NewEncoder(w).Encode(logs.Message{Name: "removed", Text: "function is removed"})
		} else if q.Get("follow") == "true" {
			http.Error(w, "the daemon ends", http.StatusServiceUnavailable)
		}
	})
	run := fakeDaemon(t, mux)
	if out, err := run("logs", "nosuch"); err == nil || !strings.Contains(err.Error(), "no such function: default/nosuch") || !strings.Contains(err.Error(), "`lambdanic list`") {
		t.Errorf("%q (%v)", out, err)
	}
	if out, err := run("logs", "removed"); err != nil || !strings.HasSuffix(out, "function is removed\n") {
		t.Errorf("of one that is removed: %q (%v)", out, err)
	}
	for _, args := range [][]string{{"quiet"}, {"quiet.default", "--tail", "3"}, {"removed", "--since", "1m"}, {"-n", "nosuch"}} {
		if out, err := run(append([]string{"logs"}, args...)...); err != nil || out != "" {
			t.Errorf("%v: %q (%v)", args, out, err)
		}
	}
	if out, err := run("logs", "nosuch", "--follow"); err == nil || err.Error() != "the daemon ends" || !strings.Contains(out, "waiting: no such function: default/nosuch") {
		t.Errorf("%q (%v)", out, err)
	}
}

// Each line of a reason has its own line.
func TestDescribeKeepsLines(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /system/function/web", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Function{
			Name: "web", Reason: "remove the lambda first to start anew\nrevision 2 serves on",
			Refused: []api.Refusal{{Target: api.TargetNIC, Reason: "one\ntwo"}},
		})
	})
	out, err := fakeDaemon(t, mux)("describe", "web")
	for _, want := range []string{`(?m)^reason +remove the lambda first to start anew$\n^ +revision 2 serves on$`, `(?m)^not on nic +one$\n^ +two$`} {
		if err != nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s (%v), want %s", out, err, want)
		}
	}
}

// Cobra's hidden command __complete is what shells ask.
func TestCompletion(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /system/functions", func(w http.ResponseWriter, r *http.Request) {
		list := []api.Function{{Name: "web", Namespace: "tenant"}, {Name: "kv", Namespace: "tenant"}}
		if r.URL.Query().Get("namespace") == "" {
			list = append(list, api.Function{Name: "kv", Namespace: "default"})
		}
		_ = json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("GET /system/namespaces", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]string{"default", "empty", "tenant"})
	})
	mux.HandleFunc("GET /system/namespace/tenant", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Namespace{
			Name: "tenant", Networks: []api.Network{{Kind: api.NetworkVLAN, ID: 100}, {Kind: api.NetworkVXLAN, ID: 5001}},
			Keys: &api.NamespaceKeys{Keys: []api.KeyDescription{{Number: 2}, {Number: 3}}},
		})
	})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"invoke", ""}, "web.tenant\nkv.tenant\nkv\n:4"},
		{[]string{"describe", ""}, "web.tenant\nkv.tenant\nkv\n:4"},
		{[]string{"stats", ""}, "web.tenant\nkv.tenant\nkv\n:4"},
		{[]string{"stats", "-n", "tenant", ""}, "web\nkv\n:4"},
		{[]string{"describe", "web", ""}, ":4"},
		{[]string{"remove", "kv.tenant", ""}, "web.tenant\nkv\n:4"},
		{[]string{"deploy", "--target", ""}, "nic\nprocess\n:4"},
		{[]string{"build", "--target", ""}, "nfp\n:4"},
		{[]string{"list", "--namespace", ""}, "default\nempty\ntenant\n:4"},
		{[]string{"namespace", "show", ""}, "default\nempty\ntenant\n:4"},
		{[]string{"namespace", "remove", "empty", ""}, "default\ntenant\n:4"},
		{[]string{"namespace", "set", "tenant", "--memory", ""}, "none\n:4"},
		{[]string{"namespace", "network", "add", ""}, "default\nempty\ntenant\n:4"},
		{[]string{"namespace", "network", "add", "tenant", ""}, "vlan:\nvxlan:\n:6"},
		{[]string{"namespace", "network", "remove", ""}, "default\nempty\ntenant\n:4"},
		{[]string{"namespace", "network", "remove", "tenant", ""}, "vlan:100\nvxlan:5001\n:4"},
		{[]string{"namespace", "network", "remove", "tenant", "vlan:100", ""}, ":4"},
		{[]string{"namespace", "key", "remove", ""}, "default\nempty\ntenant\n:4"},
		{[]string{"namespace", "key", "remove", "tenant", ""}, "2\n3\n:4"},
		{[]string{"namespace", "key", "remove", "tenant", "2", ""}, ":4"},
		{[]string{"namespace", "key", "add", "--out"}, "--out\twrite the key to a new file, which only you can read\n:4"},
		{[]string{"up", "--mode", ""}, "auto\nnative\ngeneric\noffload\n:4"},
		{[]string{"invoke", "web", "--file", ""}, ":0"},
		{[]string{"up", "--data-dir", ""}, ":16"},
		{[]string{"logs", "--tail", ""}, ":4"},
	} {
		run := fakeDaemon(t, mux)
		if out, err := run(append([]string{"__complete"}, c.args...)...); err != nil || !strings.HasPrefix(out, c.want) {
			t.Errorf("%q: %q (%v)", c.args, out, err)
		}
	}
}

// The interfaces are those of the namespace in which the server is.
func TestCompletionOfInterfaces(t *testing.T) {
	name := fmt.Sprintf("lambdanic-t%d-complete", os.Getpid())
	ns := isolated.Namespace(t, name)
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "blue0"}, PeerName: "blue1"}); err != nil {
		t.Fatal(err)
	}
	complete := func(server ...string) []string {
		out, err := fakeDaemon(t, http.NewServeMux())(slices.Concat([]string{"__complete", "ik", "attach", "echo"}, server, []string{"--interface", ""})...)
		if err != nil {
			t.Error(err)
		}
		return strings.Split(out, "\n")
	}
	if out := complete("--netns", name); !slices.Contains(out, "blue0") || !slices.Contains(out, "blue1") || !slices.Contains(out, ":4") {
		t.Errorf("in %s: %q", name, out)
	}
	for _, server := range [][]string{{"--netns", name + "-not"}, {"--pid", "4194305"}} { // a number that no process has (proc_pid(5))
		if out := complete(server...); out[0] != ":1" {
			t.Errorf("%q: %q", server, out)
		}
	}
	own := complete()
	if slices.Contains(own, "blue0") || slices.Contains(own, "lo") || !slices.Contains(own, ":4") {
		t.Errorf("in the own namespace: %q", own)
	}
	if out := complete("--pid", strconv.Itoa(os.Getpid())); !slices.Equal(out, own) {
		t.Errorf("in that of an own process: %q, want %q", out, own)
	}
}

// commands calls f for each command below cmd.
func commands(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		f(sub)
		commands(sub, f)
	}
}

// Every flag that takes a value completes it.
func TestFlagsComplete(t *testing.T) {
	commands(root(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok && f.Value.Type() != "bool" && !f.Hidden {
				t.Errorf("%s --%s completes nothing", cmd.CommandPath(), f.Name)
			}
		})
	})
}

// Every subcommand has an example, with valid flags and arguments.
func TestHelpHasExamples(t *testing.T) {
	commands(root(), func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		shown := 0
		for line := range strings.Lines(cmd.Example) {
			words, err := shlex.Split(line) // leaves a comment out
			if err != nil {
				t.Errorf("%s: %q: %v", cmd.CommandPath(), line, err)
			}
			at := slices.Index(words, "lambdanic")
			if at < 0 {
				continue
			}
			words = words[at+1:]
			if end := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "|>") && !strings.Contains(w, " ") }); end >= 0 {
				words = words[:end]
			}
			if used := takes(t, words); strings.HasPrefix(used, cmd.CommandPath()) {
				shown++
			}
		}
		if shown == 0 {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	})
}

// takes has a command parse its arguments, and names it.
func takes(t *testing.T, words []string) string {
	t.Helper()
	cmd, args, err := root().Find(words)
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err == nil {
		err = cmd.ValidateRequiredFlags()
	}
	if err == nil {
		err = cmd.ValidateFlagGroups()
	}
	if err != nil {
		t.Errorf("lambdanic %s: %v", strings.Join(words, " "), err)
	}
	return cmd.CommandPath()
}
