package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/artifact"
)

// Build compiles the lambda in dir: by the daemon if it is up, else here, into the same place.
func Build(ctx context.Context, p Paths, dir string) (*api.Artifact, error) {
	if fi, err := os.Stat(dir); err == nil && !fi.IsDir() {
		return nil, fmt.Errorf("%s is a file: name the directory that holds it and %s", dir, api.SpecFile)
	}
	source, err := compiler.PackSource(dir)
	if err != nil {
		return nil, err
	}
	a, err := NewClient(p).Build(ctx, source)
	if !errors.Is(err, ErrDown) {
		return a, err
	}
	if err := p.roomToChange(); err != nil {
		return nil, err
	}
	artifacts, err := artifact.Open(p.Artifacts(), nil)
	if err != nil {
		return nil, fmt.Errorf("open the artifacts: %w", err)
	}
	built, log, err := compile(ctx, source, artifacts)
	if err != nil {
		return nil, err
	}
	return built.Summary(log), nil
}

// compile compiles a packed source and collects the compiler's warnings.
func compile(ctx context.Context, source []byte, artifacts *artifact.Store) (*artifact.Artifact, string, error) {
	var log strings.Builder
	a, err := compiler.BuildSource(ctx, source, compiler.Options{
		Store: artifacts,
		Warn:  func(d compiler.Diagnostic) { fmt.Fprintln(&log, d) },
	})
	return a, log.String(), err
}
