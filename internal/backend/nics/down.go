package nics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/lambdanic/lambdanic/internal/nic"
)

// Down takes all NIC programs of the instance down. If somebody removed the records, root's virtual NIC is found by its name.
func (t *Target) Down(ctx context.Context) error {
	names, err := t.names()
	if err != nil {
		return err
	}
	if names == nil && os.Getuid() == 0 {
		names = []string{virtual}
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, t.drop(ctx, name))
	}
	return errors.Join(errs...)
}

// dropOthers takes down what an earlier daemon had on interfaces that are no longer asked for.
func (t *Target) dropOthers(ctx context.Context, keep []string) error {
	names, err := t.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.Contains(keep, name) {
			continue
		}
		if err := t.drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// names lists the interfaces that have or may have a NIC program of the instance.
func (t *Target) names() ([]string, error) {
	entries, err := os.ReadDir(t.site.RunDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("look for NICs: %w", err)
	}
	names := []string{}
	for _, e := range entries {
		name := e.Name()
		if name == virtualDir {
			name = virtual
		}
		names = append(names, name)
	}
	return names, nil
}

func (t *Target) drop(ctx context.Context, iface string) error {
	c := t.config(iface)
	if err := nic.Down(ctx, c); err != nil {
		return fmt.Errorf("take down NIC %s: %w", c.Instance, err)
	}
	if err := os.RemoveAll(c.RunDir); err != nil {
		return err
	}
	return t.dropLimits(c)
}

// dropLimits removes what the NICs have in common, if none is left.
func (t *Target) dropLimits(c nic.Config) error {
	if others, err := t.names(); err != nil || len(others) > 0 {
		return err
	}
	return nic.DropLimits(c)
}
