// Package instance runs a whole daemon for a demo or a benchmark.
package instance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/internal/daemon"
)

// With brings up an instance named after name and this process, with a gateway on a free port of the loopback, runs f and
// takes everything down again. It first removes what crashed instances of that name left behind.
func With(ctx context.Context, name string, f func(context.Context, *daemon.Client, daemon.Paths) error) (err error) {
	if err := sweep(ctx, name); err != nil {
		return err
	}
	p, err := paths(name, os.Getpid())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, takeDown(context.WithoutCancel(ctx), name, p)) }()
	d, err := daemon.Start(ctx, daemon.Config{Paths: p, Listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	serving, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- d.Serve(serving) }()
	err = f(ctx, daemon.NewClient(p), p)
	cancel()
	return errors.Join(err, <-served, d.Close())
}

// root holds a directory per process, by its ID, so that what a crash left behind is found.
func root(name string) string { return "/run/lambdanic-" + name }

func paths(name string, pid int) (daemon.Paths, error) {
	id := strconv.Itoa(pid)
	return daemon.NewPaths(name+"-"+id, filepath.Join(root(name), id, "d"), filepath.Join(root(name), id, "r"))
}

// takeDown removes the instance and its directory.
func takeDown(ctx context.Context, name string, p daemon.Paths) error {
	err := errors.Join(daemon.Down(ctx, p, true), os.RemoveAll(filepath.Dir(filepath.Dir(p.Run))))
	_ = os.Remove(root(name)) // only if no other process has one
	return err
}

// sweep takes down the instances of processes that no longer run.
func sweep(ctx context.Context, name string) error {
	dead, err := stand.Dead(root(name))
	if err != nil {
		return err
	}
	var errs []error
	for _, pid := range dead {
		p, err := paths(name, pid)
		if err != nil {
			return err
		}
		errs = append(errs, takeDown(ctx, name, p))
	}
	return errors.Join(errs...)
}
