package compiler

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// A directory packed by tar is the same source.
func TestSourceByTar(t *testing.T) {
	dir := filepath.Join("..", "lambdas", "web_server")
	packed, err := exec.Command("tar", "-C", dir, "-c", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	if err := UnpackSource(packed, into); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("diff", "-r", dir, into).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
