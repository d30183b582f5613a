package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// FindBinary finds a program of ours that outlives the daemon (pacer, lambda-host): beside this binary, where `make install` puts it,
// or in the PATH.
func FindBinary(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		dir := filepath.Dir(self)
		for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, "..", "libexec", "lambdanic", name)} {
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside this binary nor in the PATH: build it with `make`", name)
	}
	return path, nil
}
