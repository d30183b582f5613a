package suite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/test/patient"
)

func options(t *testing.T) Options {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF: run as root")
	}
	host, err := filepath.Abs("../../build/lambda-host")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(host); err != nil {
		t.Fatalf("%v: run make", err)
	}
	return Options{Config: stand.Config{LambdaHost: host, Lambdas: "../../lambdas"}, Rounds: 1, Progress: t.Output()}
}

// The suites run to their end; what they measured decides nothing.
func TestSuitesRun(t *testing.T) {
	if out, err := exec.Command("make", "-C", "../../client/node").CombinedOutput(); err != nil {
		t.Fatalf("build the Node.js client: %v\n%s", err, out)
	}
	for name, results := range map[string]int{"echo": 1, "swap": 2, "gateway": 2, "deploy": 2, "replies": 1, "clients": 27, "compiler/grey": 1, "rdma": 5} {
		s, err := Run(context.Background(), name, options(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s.Results) < results || s.Results[results-1].Value <= 0 || s.Suite != name {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

func TestSidesAnswerCorrectly(t *testing.T) {
	o := options(t)
	o.Lambdas = patient.Lambdas(t, o.Lambdas)
	ctx := context.Background()
	s, err := stand.New(ctx, o.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, work := range []func() Work{WebServer, KVClient, ImageTransformer} {
		w := work()
		w.Open = nil // its rate is a benchmark's business
		w.Duration = 20 * time.Millisecond
		a, err := s.Build(ctx, w.Lambda)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Measure(ctx, s, a, w, 1, o.log)
		if err != nil {
			t.Errorf("%s: %v", w.Lambda, err)
			continue
		}
		for name, f := range m.Sides {
			if len(f.P50) != 1 || f.P50[0] <= 0 || f.CPU[0] <= 0 || f.Histogram.TotalCount() == 0 {
				t.Errorf("%s on %s: got %+v", w.Lambda, name, f)
			}
		}
		if rs := m.Results(); len(rs) != 6 {
			t.Errorf("%s: got %d results, want 6: %+v", w.Lambda, len(rs), rs)
		}
	}
}

// A source that a suite edits leaves nothing behind.
func TestSourceIsRemoved(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	err := withSource(Options{Config: stand.Config{Lambdas: "../../lambdas"}}, func(dir string) error { return edit(dir, 1) })
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

func TestUnknownSuiteNamesTheKnown(t *testing.T) {
	_, err := Run(context.Background(), "warp", Options{})
	if err == nil || !strings.Contains(err.Error(), "web_server") {
		t.Errorf("got %v, want an error that lists the suites", err)
	}
}
