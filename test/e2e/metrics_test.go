package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/lambdanic/lambdanic/api"
)

// metrics asks the gateway for them as Prometheus does, and gives status and body.
func (i *instance) metrics(user, password string) (int, io.Reader) {
	i.t.Helper()
	r, err := http.NewRequestWithContext(i.t.Context(), "GET", "http://"+i.gateway+"/metrics", nil)
	if err != nil {
		i.t.Fatal(err)
	}
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		i.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	return answer.StatusCode, strings.NewReader(string(body))
}

// scrape reads the metrics with the credentials that the instance made.
func (i *instance) scrape() map[string]*dto.MetricFamily {
	i.t.Helper()
	password, err := os.ReadFile(filepath.Join(i.dir, "data", i.name, "basic-auth-password"))
	if err != nil {
		i.t.Fatal(err)
	}
	status, body := i.metrics("admin", strings.TrimSpace(string(password)))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil || status != http.StatusOK {
		i.t.Fatalf("scrape: %d, %v", status, err)
	}
	return families
}

// sample finds the metric with these labels, NAME=VALUE each; nil where there is none.
func sample(families map[string]*dto.MetricFamily, name string, labels ...string) *dto.Metric {
	for _, m := range families[name].GetMetric() {
		var has []string
		for _, l := range m.GetLabel() { // sorted
			has = append(has, l.GetName()+"="+l.GetValue())
		}
		if strings.Join(has, " ") == strings.Join(labels, " ") {
			return m
		}
	}
	return nil
}

// Prometheus reads the numbers that `lambdanic stats` shows and that the gateway answered.
func TestMetrics(t *testing.T) {
	i := up(t)
	dir := writeFailing(t)
	i.run("deploy", "lambdas/web_server", "--target", "nic")
	i.run("deploy", dir, "--target", "process")
	const missing, faults = 3, 4
	pages := 64 * runtime.NumCPU() // of the first 64 on a CPU, one is measured
	for range pages {
		i.expect("web_server", "0", "/hello", http.StatusOK, hello)
	}
	for range missing {
		if status, _, _ := i.post("web_server", "0", []byte("/nothing")); status != http.StatusNotFound {
			t.Errorf("an unknown page: status %d", status)
		}
	}
	for range faults {
		if status, _, _ := i.post("failing", "1", nil); status != http.StatusInternalServerError {
			t.Errorf("a fault: status %d", status)
		}
		if status, _, _ := i.post("nothing", "0", nil); status != http.StatusNotFound {
			t.Errorf("no such function: status %d", status)
		}
	}
	if status, _ := i.metrics("", ""); status != http.StatusUnauthorized {
		t.Errorf("without credentials: status %d", status)
	}
	if status, _ := i.metrics("admin", "wrong"); status != http.StatusUnauthorized {
		t.Errorf("with wrong credentials: status %d", status)
	}

	families := i.scrape()
	for labels, want := range map[[2]string]float64{
		{"code=200", "function_name=web_server.default"}: float64(pages),
		{"code=404", "function_name=web_server.default"}: missing,
		{"code=500", "function_name=failing.default"}:    faults,
	} {
		if got := sample(families, "gateway_function_invocation_total", labels[:]...).GetCounter().GetValue(); got != want {
			t.Errorf("%v: %v calls, want %v", labels, got, want)
		}
		if got := sample(families, "gateway_functions_seconds", labels[:]...).GetHistogram().GetSampleCount(); float64(got) != want {
			t.Errorf("%v: %v times, want %v", labels, got, want)
		}
	}
	if n := len(families["gateway_function_invocation_total"].GetMetric()); n != 3 {
		t.Errorf("calls in %d series, want 3", n)
	}
	stats := query[[]api.FunctionStats](i, "stats")
	if len(stats) != 2 {
		t.Fatalf("stats: %+v", stats)
	}
	for _, s := range stats {
		checkFunction(t, families, &s)
	}
	if s := stats[1]; s.Name != "web_server" || s.Requests < uint64(pages) || s.Samples == 0 {
		t.Errorf("there is nothing to compare with: %+v", s)
	}
	passed := families["lambdanic_nic_passed_total"].GetMetric()
	if len(passed) != 1 || len(passed[0].GetLabel()) != 1 || passed[0].GetLabel()[0].GetValue() == "" {
		t.Errorf("the NIC: %v", passed)
	}

	i.run("remove", "failing")
	families = i.scrape()
	for name, f := range families {
		if strings.Contains(f.String(), "failing") {
			t.Errorf("%s has a function that was removed: %v", name, f)
		}
	}
	if sample(families, "gateway_service_count", "function_name=web_server.default").GetGauge().GetValue() != 1 {
		t.Error("the other one is gone, too")
	}
}

// checkFunction compares what was scraped with what `stats` said. Nobody called in between.
func checkFunction(t *testing.T, families map[string]*dto.MetricFamily, s *api.FunctionStats) {
	t.Helper()
	function, target := "function_name="+s.Name+"."+s.Namespace, "target="+string(s.Target)
	for name, want := range map[string]uint64{
		"requests": s.Requests, "replies": s.Replies, "errors": s.Errors, "drops": s.Drops, "external_calls": s.Calls, "late": s.Late,
		"received_bytes": s.BytesIn, "sent_bytes": s.BytesOut,
	} {
		m := sample(families, fmt.Sprintf("lambdanic_function_%s_total", name), function, target)
		if m == nil || m.GetCounter().GetValue() != float64(want) {
			t.Errorf("%s of %s: %v, want %d", name, s.Name, m, want)
		}
	}
	for cause := api.FaultOwn; cause <= api.FaultCrash; cause++ {
		m := sample(families, "lambdanic_function_faults_total", "cause="+cause.String(), function, target)
		if m == nil || m.GetCounter().GetValue() != float64(s.FaultsBy[cause]) {
			t.Errorf("faults of %s by %s: %v, want %d", s.Name, cause, m, s.FaultsBy[cause])
		}
	}
	h := sample(families, "lambdanic_function_run_seconds", function, target).GetHistogram()
	if h == nil || h.GetSampleCount() != s.Samples || h.GetSampleSum() != float64(s.SampledNS)/1e9 {
		t.Fatalf("runs of %s: %v, want %d of %d ns", s.Name, h, s.Samples, s.SampledNS)
	}
	var below uint64
	for i, n := range s.Histogram {
		if below += n; h.GetBucket()[i].GetCumulativeCount() != below {
			t.Errorf("runs of %s up to %v s: %v, want %d", s.Name, h.GetBucket()[i].GetUpperBound(), h.GetBucket()[i], below)
		}
	}
}
