// Package loops has lambdas in plain C that consist of a loop, to be timed on the NIC and as ordinary programs.
package loops

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/corpus"
)

//go:embed */*.c */lambda.yml
var files embed.FS

// Build compiles one of the lambdas.
func Build(ctx context.Context, name string) (a *compiler.Artifact, err error) {
	err = unpacked(func(dir string) error {
		a, err = compiler.Build(ctx, filepath.Join(dir, name), compiler.Options{})
		return err
	})
	return a, err
}

// unpacked runs f with a directory of all files.
func unpacked(f func(dir string) error) error {
	dir, err := os.MkdirTemp("", "lambdanic-loops-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ordinary, err := fs.Sub(corpus.Ordinary, "ordinary")
	if err != nil {
		return err
	}
	return errors.Join(os.CopyFS(dir, files), os.CopyFS(filepath.Join(dir, "ordinary"), ordinary), f(dir))
}

// A Native is one of the lambdas compiled as an ordinary program, with -O2 but without vectors, as BPF has no vectors.
type Native struct {
	binary string
}

// BuildNative compiles a lambda to be timed: method first is run once before the runs of method.
func BuildNative(ctx context.Context, name string, first, method uint32, times int) (*Native, error) {
	out, err := os.CreateTemp("", "lambdanic-loop-")
	if err != nil {
		return nil, err
	}
	n := &Native{out.Name()}
	err = errors.Join(out.Close(), unpacked(func(dir string) error {
		cmd := exec.CommandContext(ctx, "clang-19", "-O2", "-fno-vectorize", "-fno-slp-vectorize", "-fwrapv", "-fno-strict-aliasing",
			"-I"+filepath.Join(dir, "ordinary"), "-DENTRY="+name, fmt.Sprintf("-DFIRST=%d", first), fmt.Sprintf("-DMETHOD=%d", method),
			fmt.Sprintf("-DTIMES=%d", times), "-o", n.binary, filepath.Join(dir, name, name+".c"), filepath.Join(dir, "native", "time.c"))
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("compile %s natively: %w\n%s", name, err, text)
		}
		return nil
	}))
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Run gives the time of each run. It keeps to the CPUs of the calling thread.
func (n *Native) Run(ctx context.Context) (times []time.Duration, err error) {
	out, err := exec.CommandContext(ctx, n.binary).Output()
	if err != nil {
		return nil, fmt.Errorf("run a loop natively: %w", err)
	}
	for field := range strings.FieldsSeq(string(out)) {
		ns, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("run a loop natively: %w", err)
		}
		times = append(times, time.Duration(ns))
	}
	return times, nil
}

// Close removes the program.
func (n *Native) Close() error { return os.Remove(n.binary) }
