package compiler

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/opencontainers/go-digest"

	"github.com/lambdanic/lambdanic/compiler/sandbox"
)

// pluginName is the plugin of compiler/passes, which makes ordinary C load into the kernel.
const pluginName = "liblambda_passes.so"

// pluginFile is where the plugin is in the sandbox.
const pluginFile = "/" + pluginName

// pluginDir is where tests that are built with -trimpath find the plugin. The linker sets it (tools/gotest).
var pluginDir string

// A plugin goes into the sandbox as the bytes that were read, so that the plugin that compiles is the one in the cache key.
type plugin struct {
	data   []byte
	digest digest.Digest
}

// findPlugin reads the plugin from beside this binary, from where `make install` puts it, or, for tests, from where `make` leaves it in
// the source tree.
func findPlugin() (plugin, error) {
	var dirs []string
	if self, err := os.Executable(); err == nil {
		dir := filepath.Dir(self)
		dirs = append(dirs, dir, filepath.Join(dir, "..", "libexec", "lambdanic"))
	}
	if pluginDir != "" {
		dirs = append(dirs, pluginDir)
	} else if _, source, _, ok := runtime.Caller(0); ok && filepath.IsAbs(source) { // not with -trimpath
		dirs = append(dirs, filepath.Join(filepath.Dir(source), "..", "build"))
	}
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, pluginName))
		if err == nil {
			return plugin{data, digest.FromBytes(data)}, nil
		} else if !os.IsNotExist(err) {
			return plugin{}, fmt.Errorf("%w: %w", ErrToolchain, err)
		}
	}
	return plugin{}, fmt.Errorf("%w: %s is not beside this binary: build it with `make`", ErrToolchain, pluginName)
}

func (p plugin) file() sandbox.File { return sandbox.File{Path: pluginFile, Data: p.data} }
