// Package target describes the processors that a lambda can run on: their memories, and what their verifiers accept.
package target

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/lambdanic/lambdanic/api"
)

// ErrUnknown says that there is no model of that name.
var ErrUnknown = errors.New("unknown target")

// A Model describes a processor: a data file in models/.
type Model struct {
	Name     string   `yaml:"name"`
	About    string   `yaml:"about"`
	ClockMHz int      `yaml:"clock_mhz"`
	Memories []Memory `yaml:"memories"` // the fastest first
	Offload  *Offload `yaml:"offload"`  // nil if the nfp driver does not load its programs
}

// A Memory is one of a processor's memories.
type Memory struct {
	Name     string    `yaml:"name"`
	About    string    `yaml:"about"`
	Size     api.Bytes `yaml:"size"`
	Largest  api.Bytes `yaml:"largest"` // largest object that is worth a place in it; 0 is Size
	Hints    []string  `yaml:"hints"`   // by which an author asks for it
	Patterns []Pattern `yaml:"patterns"`
	Cycles   [2]int    `yaml:"cycles"` // of an access, at best and at worst
}

// A Pattern is how an object is used.
type Pattern string

// The patterns.
const (
	ReadOnly   Pattern = "read-only"
	ReadMostly Pattern = "read-mostly"
	Written    Pattern = "written"
	Request    Pattern = "request" // of one request, and forgotten with it
	Shared     Pattern = "shared"  // with the host
	Keyed      Pattern = "keyed"   // looked up by a key
)

//go:embed models/*.yml
var models embed.FS

// Names lists the models.
func Names() (names []string) {
	files, err := fs.Glob(models, "models/*.yml")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(path.Base(f), ".yml"))
	}
	return names
}

// Load reads a model of this package. Its errors wrap ErrUnknown.
func Load(name string) (*Model, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("%w: %q is none of %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}
	data, err := models.ReadFile("models/" + name + ".yml")
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	return Parse(data)
}

// Parse reads a model.
func Parse(data []byte) (*Model, error) {
	var m Model
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField()).Decode(&m); err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	if m.Name == "" || m.ClockMHz <= 0 || len(m.Memories) == 0 {
		return nil, errors.New("read model: name, clock_mhz and memories are needed")
	}
	return &m, nil
}
