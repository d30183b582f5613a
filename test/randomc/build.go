package randomc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
)

// Build compiles the program of a seed.
func Build(ctx context.Context, seed uint64) (*compiler.Artifact, error) {
	a, err := BuildSource(ctx, Generate(seed))
	if err != nil {
		return nil, fmt.Errorf("build the random program of seed %d: %w", seed, err)
	}
	return a, nil
}

// BuildSource compiles a program that was generated.
func BuildSource(ctx context.Context, source string) (*compiler.Artifact, error) {
	dir, err := os.MkdirTemp("", "lambdanic-random-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{Name + ".c": source, api.SpecFile: Spec} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	a, err := compiler.Build(ctx, dir, compiler.Options{})
	if err == nil {
		_, err = a.Object(api.TargetNIC)
	}
	return a, err
}
