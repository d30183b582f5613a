package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
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

// A lambda that was only just begun deploys and answers.
func TestNew(t *testing.T) {
	i := up(t)
	dir := filepath.Join(t.TempDir(), "greeting")
	i.run("new", "greeting", "--dir", dir)
	i.run("deploy", dir)
	i.expect("greeting", "0", "hello, world", http.StatusOK, "HELLO, WORLD")
}
