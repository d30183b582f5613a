package demo

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/test/patient"
)

// installed gives the directory in which make builds a place in the PATH, where the daemon looks for lambda-host.
func installed(t *testing.T) Options {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF: run as root")
	}
	build, err := filepath.Abs("../../build")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", build+":"+os.Getenv("PATH"))
	host, err := exec.LookPath("lambda-host")
	if err != nil {
		t.Fatalf("%v: run make", err)
	}
	return Options{Config: stand.Config{LambdaHost: host, Lambdas: patient.Lambdas(t, "../../lambdas")}, Progress: t.Output()}
}

func TestANewcomerGetsCorrectAnswers(t *testing.T) {
	o := installed(t)
	correct, err := o.use(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, lambda := range []string{"web_server", "kv_client", "image_transformer"} {
		if !correct[lambda] {
			t.Errorf("%s answered wrongly", lambda)
		}
	}
}

// figures are what a side might have been measured as.
func figures(p50, open float64) *measure.Figures {
	h := hdrhistogram.New(1, 1e9, 3)
	for i := range int64(1000) {
		_ = h.RecordValue(int64(p50*1000) + i)
	}
	f := &measure.Figures{
		P50: report.Samples{p50}, P99: report.Samples{2 * p50}, P999: report.Samples{3 * p50},
		ClosedRate: report.Samples{1e6 / p50}, CPU: report.Samples{500 * p50}, Histogram: h,
	}
	if open > 0 {
		f.OpenRate = report.Samples{open}
	}
	return f
}

func TestReportHasTheAgreedShape(t *testing.T) {
	measured := []*measure.Measurement{
		{Work: measure.WebServer(), Sides: map[string]*measure.Figures{
			measure.NIC: figures(5, 4e6), measure.Process: figures(50, 2e5), measure.Spinning: figures(10, 1e5),
		}},
		{Work: measure.ImageTransformer(), Sides: map[string]*measure.Figures{
			measure.NIC: figures(500, 0), measure.Process: figures(600, 0), measure.Spinning: figures(550, 0),
		}},
	}
	var r Report
	r.Lambdas = map[string]Lambda{}
	for _, m := range measured {
		r.Lambdas[m.Work.Lambda] = lambdaOf(m, true)
	}
	var table strings.Builder
	o := Options{Out: t.TempDir(), Table: &table}
	if err := o.write(r, measured); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(o.Out, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"environment.nic_mode": "", "limit.xdp_tx_pps": 0.0,
		"lambdas.web_server.correct": true, "lambdas.web_server.nic.p50_us": 5.0, "lambdas.web_server.process.p99_us": 100.0,
		"lambdas.web_server.process_spinning.p999_us": 30.0, "lambdas.web_server.ratio.p50": 10.0,
		"lambdas.web_server.ratio.open_rps": 20.0, "lambdas.web_server.ratio_spinning.closed_rps": 2.0,
		"lambdas.web_server.cpu_ns_per_request.process":    25000.0,
		"lambdas.image_transformer.nic.open_rps":           nil,
		"lambdas.image_transformer.ratio.open_rps":         nil,
		"lambdas.image_transformer.cpu_ns_per_request.nic": 250000.0,
	} {
		if v, err := at(got, path); err != nil || v != want {
			t.Errorf("%s: got %v, %v; want %v", path, v, err, want)
		}
	}
	if s := table.String(); !strings.Contains(s, "web_server: every answer correct") {
		t.Errorf("the table does not say that web_server is correct:\n%s", s)
	}
	if _, err := os.Stat(filepath.Join(o.Out, "demo.svg")); err != nil {
		t.Error(err)
	}
}

// at follows a path of keys.
func at(v any, path string) (any, error) {
	for _, key := range strings.Split(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, errors.New("there is no object around " + key)
		}
		if v, ok = m[key]; !ok {
			return nil, errors.New("there is no " + key)
		}
	}
	return v, nil
}
