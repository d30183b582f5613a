package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/nic"
)

// A trial tries everything together: it brings a virtual NIC up, and has a lambda answer on it. A feature may exist and yet not
// work together with the others. The trial has its own names, directory and BPF file system.
type trial struct {
	mode  nic.Mode
	write func(dir, name string) error // a lambda and its examples

	dir    string
	config nic.Config
	nic    *nic.NIC // nil if it is not up
}

func newTrial() *trial { return &trial{mode: nic.ModeNative, write: compiler.Scaffold} }

const mendFirst = "mend what is missing above; if nothing is, report this at " + kernel.Issues

func (t *trial) run(ctx context.Context) []Check {
	checks := []Check{
		probe{"NIC program", true, t.up, mendFirst}.run(ctx),
		probe{"lambda on the NIC", true, t.call, mendFirst}.run(ctx),
	}
	if gone := (probe{"clean-up", false, t.down, "remove by hand what is named"}).run(context.WithoutCancel(ctx)); !gone.OK {
		checks = append(checks, gone)
	}
	return checks
}

func (t *trial) up(ctx context.Context) (detail string, err error) {
	if t.dir, err = os.MkdirTemp("", "lambdanic-doctor-"); err != nil {
		return "", err
	}
	if err := os.Mkdir(t.bpf(), 0o700); err != nil {
		return "", err
	}
	t.config = nic.Config{
		Instance: strings.TrimPrefix(filepath.Base(t.dir), "lambdanic-"), Mode: t.mode, RunDir: t.dir, PinDir: filepath.Join(t.bpf(), "pins"),
	}
	if t.nic, err = nic.Up(ctx, t.config); err != nil {
		return "", fmt.Errorf("bring a NIC up: %w", err)
	}
	return fmt.Sprintf("runs on a veth pair in %s mode", t.nic.Mode()), nil
}

// bpf is where nic.Up mounts a BPF file system.
func (t *trial) bpf() string { return filepath.Join(t.dir, "bpf") }

func (t *trial) call(ctx context.Context) (detail string, err error) {
	if t.nic == nil {
		return "", errors.New("there is no NIC to run it on")
	}
	d, examples, err := t.build(ctx)
	if err != nil {
		return "", fmt.Errorf("build a lambda: %w", err)
	}
	if err := t.nic.Deploy(ctx, d); errors.Is(err, nic.ErrRefused) {
		return "", kernel.Fails("does not take a lambda", err)
	} else if err != nil {
		return "", fmt.Errorf("deploy a lambda: %w", err)
	}
	client, err := lambdanic.Dial(t.nic.Addr().String())
	if err != nil {
		return "", fmt.Errorf("call a lambda: %w", err)
	}
	defer client.Close()
	err = compiler.RunExamples(ctx, examples, func(ctx context.Context, method uint32, request []byte) (api.Status, []byte, error) {
		r, err := client.Call(ctx, lambdanic.Request{Workload: d.Workload, Method: method, Body: request})
		return r.Status, r.Body, err
	})
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("call a lambda: %w", ctx.Err())
	case errors.Is(err, lambdanic.ErrDeadlineExceeded):
		return "", fmt.Errorf("call a lambda: %w: does a packet filter drop UDP from %v?", err, t.nic.Addr())
	case err != nil:
		return "", kernel.Fails("does not run a lambda as it should", err)
	}
	return "builds, loads and answers as it should", nil
}

func (t *trial) build(ctx context.Context) (d backend.Deployment, examples []api.Example, err error) {
	const name = "doctor"
	dir := filepath.Join(t.dir, "lambda")
	if err := t.write(dir, name); err != nil {
		return d, nil, err
	}
	if examples, err = api.ReadExamples(filepath.Join(dir, api.ExamplesFile)); err != nil {
		return d, nil, err
	}
	a, err := compiler.Build(ctx, dir, compiler.Options{})
	if err != nil {
		return d, nil, err
	}
	d = backend.Deployment{Namespace: name, Name: name, Workload: 1, Revision: 1, Spec: a.Manifest.Spec, BPF: a.BPF}
	return d, examples, nil
}

// down removes all that the trial made, also after steps that failed.
func (t *trial) down(ctx context.Context) (detail string, err error) {
	if t.dir == "" {
		return "", nil
	}
	var errs []error
	if t.nic != nil {
		errs = append(errs, t.nic.Close(), nic.Down(ctx, t.config))
	}
	_ = unix.Unmount(t.bpf(), 0) // if this fails, removing the directory is the error
	return "", errors.Join(append(errs, os.RemoveAll(t.dir))...)
}
