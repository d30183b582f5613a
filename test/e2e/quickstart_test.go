package e2e

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// What the README's quick start does.
func TestQuickStart(t *testing.T) {
	i := up(t)
	i.run("deploy", "lambdas/web_server")
	page, err := exec.Command("curl", "-sS", "http://"+i.gateway+"/function/web_server").Output()
	if err != nil || len(page) == 0 {
		t.Fatalf("curl: %q, %v", page, err)
	}
	if got := i.run("invoke", "web_server"); string(got) != string(page) {
		t.Errorf("invoke: %q, curl: %q", got, page)
	}
	i.run("stats")
	i.run("remove", "web_server")
	if code, _, _ := i.post("web_server", "0", nil); code != http.StatusNotFound {
		t.Errorf("after remove: status %d", code)
	}
}

// A lambda that was only just begun passes its test, deploys and answers; another answer fails the test.
func TestNew(t *testing.T) {
	i := up(t)
	dir := filepath.Join(t.TempDir(), "greeting")
	i.run("new", "greeting", "--dir", dir)
	out := string(i.run("test", dir))
	if strings.Count(out, "ok    greeting on nic: ") != 2 || strings.Count(out, "ok    greeting on process: ") != 2 {
		t.Errorf("test:\n%s", out)
	}
	more := "- name: letters stay small\n  request: a\n  reply: a\n"
	file, err := os.OpenFile(filepath.Join(dir, api.ExamplesFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(more)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	const wrong = `FAIL  greeting on process: letters stay small: reply is "A" instead of "a"`
	if out, err := i.try("test", dir, "--target", "process"); err == nil || !strings.Contains(out, wrong) {
		t.Errorf("test: %v\n%s", err, out)
	}
	i.run("deploy", dir)
	i.expect("greeting", "0", "hello, world", http.StatusOK, "HELLO, WORLD")
}
