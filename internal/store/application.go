package store

import (
	"context"
	"errors"
)

// applicationDir has the ikernels of applications that are of a namespace, as application-ikernels/NODE/NAME. They end with the node's daemon, at the latest.
const applicationDir = "application-ikernels/"

func applicationKey(node, name string) string { return applicationDir + node + "/" + name }

// PutApplicationIkernel records that an application has an ikernel on a node. It fails if the ikernel's namespace is not there any more.
func (s *Store) PutApplicationIkernel(ctx context.Context, node string, i *Ikernel) error {
	return s.putIkernel(ctx, applicationKey(node, i.Name), i)
}

// DeleteApplicationIkernel records that an application has an ikernel no more.
func (s *Store) DeleteApplicationIkernel(ctx context.Context, node, name string) error {
	return s.deleteIkernel(ctx, applicationKey(node, name), name)
}

// DeleteApplicationIkernels forgets those of a node that ended, by their names.
func (s *Store) DeleteApplicationIkernels(ctx context.Context, node string, ended func(name string) bool) error {
	all, err := listBelow[Ikernel](ctx, s, applicationKey(node, ""))
	if err != nil {
		return err
	}
	var errs []error
	for _, i := range all {
		if ended(i.Name) {
			errs = append(errs, s.DeleteApplicationIkernel(ctx, node, i.Name))
		}
	}
	return errors.Join(errs...)
}
