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
	dir, err := os.MkdirTemp("", "lambdanic-random-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{Name + ".c": Generate(seed), api.SpecFile: Spec} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	a, err := compiler.Build(ctx, dir, compiler.Options{})
	if err != nil {
		return nil, fmt.Errorf("build the random program of seed %d: %w", seed, err)
	}
	return a, nil
}
