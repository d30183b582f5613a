// Package corpus holds small programs in plain C, like those in textbooks and libraries, with vectors of requests and replies from other
// implementations. vectors.py names these and makes the vectors.
package corpus

import (
	"context"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
)

//go:embed */*.c */lambda.yml */vectors.json
var files embed.FS

// Ordinary holds a replacement of the SDK for ordinary programs (lambda.h), to compile the corpus without any of our code, and a main that
// runs it.
//
//go:embed ordinary
var Ordinary embed.FS

// A Program is one lambda in plain C.
type Program struct {
	Name    string
	Vectors []Vector
}

// A Vector is a request, and the reply that it must get.
type Vector struct {
	In, Out Hex
}

// Hex is bytes that JSON holds in hexadecimal.
type Hex []byte

// UnmarshalText reads hexadecimal digits.
func (h *Hex) UnmarshalText(text []byte) (err error) {
	*h, err = hex.AppendDecode(nil, text)
	return err
}

// Programs lists the corpus in the order of names.
func Programs() ([]Program, error) {
	paths, err := fs.Glob(files, "*/vectors.json")
	if err != nil {
		return nil, err
	}
	var list []Program
	for _, path := range paths {
		p := Program{Name: filepath.Dir(path)}
		data, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &p.Vectors); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// Source is the program's text.
func (p Program) Source() ([]byte, error) { return files.ReadFile(p.Name + "/" + p.Name + ".c") }

// Build compiles the program.
func (p Program) Build(ctx context.Context, opts compiler.Options) (*compiler.Artifact, error) {
	dir, err := os.MkdirTemp("", "lambdanic-corpus-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{p.Name + ".c", api.SpecFile} {
		data, err := files.ReadFile(p.Name + "/" + name)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	a, err := compiler.Build(ctx, dir, opts)
	if err == nil {
		_, err = a.Object(api.TargetNIC)
	}
	return a, err
}
