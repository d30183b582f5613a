// Package compiler makes artifacts of lambdas: one C source in, an object for each target out.
package compiler

import (
	"context"
	"errors"

	"github.com/lambdanic/lambdanic/compiler/artifact"
)

// Artifact is what Build makes.
type Artifact = artifact.Artifact

// Options tune Build. The zero value is ready to use.
type Options struct {
	// Store, where set, keeps what is built; an unchanged source is then found there and not compiled again.
	Store *artifact.Store
}

// Build compiles the lambda in the directory dir, which holds lambda.yml and its C source.
func Build(ctx context.Context, dir string, opts Options) (*Artifact, error) {
	return nil, errors.ErrUnsupported
}

// Scaffold writes a new lambda into dir, which must not exist or be empty.
func Scaffold(dir, name string) error { return errors.ErrUnsupported }

// PackSource packs the lambda in dir into a tar.
func PackSource(dir string) ([]byte, error) { return nil, errors.ErrUnsupported }

// UnpackSource unpacks what PackSource packed into dir.
func UnpackSource(tar []byte, dir string) error { return errors.ErrUnsupported }
