package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/artifact"
)

// Build compiles the lambda in dir: by the daemon where one is up, else here, into the same place.
func Build(ctx context.Context, p Paths, dir string) (*api.Artifact, error) {
	source, err := compiler.PackSource(dir)
	if err != nil {
		return nil, err
	}
	a, err := NewClient(p).Build(ctx, source)
	if !errors.Is(err, ErrDown) {
		return a, err
	}
	artifacts, err := artifact.Open(p.Artifacts())
	if err != nil {
		return nil, fmt.Errorf("open the artifacts: %w", err)
	}
	built, err := compiler.BuildSource(ctx, source, compiler.Options{Store: artifacts})
	if err != nil {
		return nil, err
	}
	return &api.Artifact{Image: built.Manifest.Spec.Name + "@" + built.Digest, Spec: built.Manifest.Spec}, nil
}
