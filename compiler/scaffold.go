package compiler

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
)

//go:embed scaffold
var scaffold embed.FS

// Scaffold writes a new lambda into dir, which must be empty or not exist: a spec, a source, a README and examples.
func Scaffold(dir, name string) error {
	spec := api.Spec{Name: name}.Default()
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("new lambda: %w", err)
	}
	templates, err := template.ParseFS(scaffold, "scaffold/*.tmpl")
	if err != nil {
		return fmt.Errorf("new lambda: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("new lambda: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("new lambda: %s is not empty: name another directory", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("new lambda: %w", err)
	}
	for file, from := range map[string]string{
		api.SpecFile: "lambda.yml.tmpl", spec.Source: "source.c.tmpl", api.ExamplesFile: "examples.yml.tmpl", "README.md": "README.md.tmpl",
	} {
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, from, spec); err != nil {
			return fmt.Errorf("new lambda: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), text.Bytes(), 0o644); err != nil {
			return fmt.Errorf("new lambda: %w", err)
		}
	}
	return nil
}

// New is Scaffold, but removes a lambda that does not build: a word of C or of the SDK cannot name a function. Without the compiler, it does
// not try to build.
func New(ctx context.Context, dir, name string) error {
	_, missing := os.Stat(dir)
	if err := Scaffold(dir, name); err != nil {
		return err
	}
	a, err := Build(ctx, dir, Options{})
	if err == nil {
		_, err = a.Object(api.TargetNIC)
	}
	if !errors.As(err, new(*Error)) && !errors.Is(err, artifact.ErrNoObject) {
		return nil
	}
	err = fmt.Errorf("new lambda: C has no room for a function of this name, choose another: %w", err)
	entries, removal := os.ReadDir(dir)
	for _, e := range entries { // it was empty
		removal = errors.Join(removal, os.Remove(filepath.Join(dir, e.Name())))
	}
	if missing != nil {
		removal = errors.Join(removal, os.Remove(dir))
	}
	return errors.Join(err, removal)
}
