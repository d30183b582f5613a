package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// A function that fails too often on the NIC goes on as a process.
func TestBreaker(t *testing.T) {
	i := up(t)
	dir := writeFailing(t)
	write(t, filepath.Join(dir, "lambda.yml"), "name: failing\nbreaker: {fault_percent: 100, requests: 1}\n")
	i.run("deploy", dir)
	if f := query[api.Function](i, "describe", "failing"); f.Target != api.TargetNIC {
		t.Fatalf("deployed as %+v", f)
	}
	var f api.Function
	for end := time.Now().Add(patience); f.Target != api.TargetProcess; f = query[api.Function](i, "describe", "failing") {
		if time.Now().After(end) {
			t.Fatalf("it was not taken out: %+v", f)
		}
		if status, body, _ := i.post("failing", "1", nil); status != http.StatusInternalServerError {
			t.Errorf("a fault: %d %s", status, body)
		}
	}
	if len(f.Refused) != 1 || f.Refused[0].Target != api.TargetNIC || !strings.Contains(f.Refused[0].Reason, "it was taken out: ") {
		t.Errorf("the reason is %+v", f.Refused)
	}
	if status, body, _ := i.post("failing", "0", nil); status != http.StatusOK {
		t.Errorf("afterwards: %d %s", status, body)
	}
	i.run("deploy", dir)
	if f := query[api.Function](i, "describe", "failing"); f.Target != api.TargetNIC || len(f.Refused) > 0 {
		t.Errorf("deployed again as %+v", f)
	}
}
