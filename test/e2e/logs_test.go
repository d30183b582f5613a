package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openfaas/faas-provider/logs"
)

// A lambda that fails when it is asked to.
const failing = `#include "lambda.h"
int failing(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	if (match_data->method == 1)
		return RETURN_FAULT;
	return lambda_reply(headers, 0, 0);
}
`

// writeFailing returns its directory.
func writeFailing(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "failing")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "failing.c"), failing)
	write(t, filepath.Join(dir, "lambda.yml"), "name: failing\n")
	return dir
}

// The log tells what became of functions, of each and of all, and follows what comes.
func TestLogs(t *testing.T) {
	i := up(t)
	dir := writeFailing(t)

	follower := i.command("logs", "failing", "--follow")
	out, err := follower.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func(want ...string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the log ends before %q: %v", want, lines.Err())
		}
		for _, w := range want {
			if !strings.Contains(lines.Text(), w) {
				t.Errorf("got %q, want %q", lines.Text(), want)
			}
		}
	}
	i.run("deploy", "lambdas/web_server")
	i.run("deploy", dir, "--target", "nic")
	next("msg=deployed", "/failing ", "target=nic")
	for range 3 {
		if status, body, _ := i.post("failing", "1", nil); status != http.StatusInternalServerError {
			t.Errorf("%d %s", status, body)
		}
	}
	for failed := 0; failed < 3 && !t.Failed(); { // in one line or more
		next("msg=failed", "/failing ", "own")
		var n int
		if _, faults, ok := strings.Cut(lines.Text(), `faults="`); ok {
			_, _ = fmt.Sscan(faults, &n)
		}
		failed += max(n, 1)
	}
	i.run("remove", "failing")
	next("msg=removed", "/failing")
	if err := errors.Join(follower.Process.Signal(syscall.SIGINT), follower.Wait()); err != nil {
		t.Errorf("after ^C: %v", err)
	}

	all := string(i.run("logs"))
	for _, want := range []string{"web_server", "failing", "msg=removed", "NIC is up"} {
		if !strings.Contains(all, want) {
			t.Errorf("`logs` lacks %q:\n%s", want, all)
		}
	}
	if one := string(i.run("logs", "web_server", "--since", "1h", "--tail", "1")); strings.Count(one, "\n") != 1 || !strings.Contains(one, "/web_server") {
		t.Errorf("`logs web_server` says %q", one)
	}
	var m logs.Message
	if err := json.Unmarshal(i.run("logs", "web_server", "--tail", "1", "--json"), &m); err != nil || m.Name != "web_server" || m.Timestamp.IsZero() {
		t.Errorf("%+v, %v", m, err)
	}
	i.refused("cannot be negative", "logs", "--tail", "-1")
}
