// Package stack reads stack.yml: several functions to deploy at once, as OpenFaaS writes them down.
package stack

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/openfaas/faas-provider/types"
)

// Function is one entry: a lambda's directory, or an image that is already built.
type Function struct {
	types.FunctionDeployment
	Dir string // "" where Image is set
}

type file struct {
	Version   string           `yaml:"version"`
	Provider  provider         `yaml:"provider"`
	Functions map[string]entry `yaml:"functions"`
}

// provider names whom an OpenFaaS client would talk to. We are that.
type provider struct {
	Name    string `yaml:"name"`
	Gateway string `yaml:"gateway"`
}

type entry struct {
	Language    string            `yaml:"lang"` // there is one
	Handler     string            `yaml:"handler"`
	Image       string            `yaml:"image"`
	Namespace   string            `yaml:"namespace"`
	Environment map[string]string `yaml:"environment"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// maxSize bounds the file: aliases in YAML let small files become large.
const maxSize = 1 << 20

// Read returns the functions of a file, by name.
func Read(path string) ([]Function, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read stack: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read stack: %w", err)
	}
	if len(raw) > maxSize {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxSize)
	}
	var parsed file
	if err := yaml.UnmarshalWithOptions(raw, &parsed, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read %s: %s", path, yaml.FormatError(err, false, true))
	}
	if len(parsed.Functions) == 0 {
		return nil, fmt.Errorf("%s names no functions", path)
	}
	var functions []Function
	for _, name := range slices.Sorted(maps.Keys(parsed.Functions)) {
		e := parsed.Functions[name]
		if (e.Handler == "") == (e.Image == "") {
			return nil, fmt.Errorf("%s: functions.%s: give either handler, a lambda's directory, or image", path, name)
		}
		fn := Function{FunctionDeployment: types.FunctionDeployment{
			Service: name, Image: e.Image, Namespace: e.Namespace, EnvVars: e.Environment, Labels: &e.Labels, Annotations: &e.Annotations,
		}}
		if e.Handler != "" {
			fn.Dir = e.Handler
			if !filepath.IsAbs(fn.Dir) {
				fn.Dir = filepath.Join(filepath.Dir(path), fn.Dir)
			}
		}
		functions = append(functions, fn)
	}
	return functions, nil
}
