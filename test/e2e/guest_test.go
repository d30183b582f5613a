//go:build guest

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

func build() error { return nil } // tools/kernels has built everything: a guest only runs it

// fillStore copies the bundled lambdas' builds: an emulated guest takes as long for one as a build may take.
func (i *instance) fillStore() error {
	return os.CopyFS(filepath.Join(i.dir, "data", i.name), os.DirFS(filepath.Join(root, "build", "guests", "data", "default")))
}

// streams is client/c/driver/streams.c, which tools/kernels has built.
func streams(*testing.T) string { return filepath.Join(root, "build", "guests", "streams") }

func TestDoctor(t *testing.T) {
	if out, err := exec.Command(binary, "doctor").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}

// On a kernel older than README promises, doctor and up say which one is needed.
func TestTooOld(t *testing.T) {
	i := newInstance(t)
	out, err := exec.Command(binary, "doctor").CombinedOutput()
	if err == nil {
		t.Errorf("doctor finds nothing missing:\n%s", out)
	}
	says := map[string]string{"doctor": string(out)}
	if says["up"], err = i.try("up", "--detach", "--listen", i.gateway); err == nil {
		t.Errorf("up succeeds:\n%s", says["up"])
	}
	for what, text := range says {
		if !strings.Contains(text, kernel.Newer) {
			t.Errorf("%s does not name the kernel that is needed:\n%s", what, text)
		}
	}
}
