package ikernel

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/lambdanic/lambdanic/api"
)

// KeyID is what the ID of a key may be.
var KeyID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// ChangeKeys changes the keys of an ikernel in one step, and returns when the NIC uses no other. Where it fails, nothing is changed.
func (m *Manager) ChangeKeys(ctx context.Context, name string, change api.IkernelKeysRequest) (*api.Ikernel, error) {
	a, err := m.lock(name)
	if err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	record := a.record
	if record.Keys, err = changed(&record.IkernelRequest, change); err != nil {
		return nil, err
	}
	undo, err := a.setKeys(record.Keys)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := m.cfg.Store.PutIkernel(ctx, m.cfg.Node, &record); err != nil {
		return nil, errors.Join(err, undo())
	}
	a.record = record
	return a.describe()
}

// setKeys has the ikernel use these keys; undo, those that it had. While it waits, they are only recorded.
func (a *attachment) setKeys(keys []api.IkernelKey) (undo func() error, err error) {
	if a.instance == nil {
		return func() error { return nil }, nil
	}
	return a.instance.(keyed).SetKeys(keys)
}

// changed returns the keys of an ikernel after a change.
func changed(r *api.IkernelRequest, change api.IkernelKeysRequest) ([]api.IkernelKey, error) {
	after := *r
	after.Keys = slices.Clone(r.Keys)
	for _, name := range change.Remove {
		i := slices.IndexFunc(after.Keys, func(k api.IkernelKey) bool { return k.Name() == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: %s has no key %q: `lambdanic ik keys %s` lists those that it has", ErrInvalid, r.Name, name, r.Name)
		}
		after.Keys = slices.Delete(after.Keys, i, i+1)
	}
	for _, k := range change.Add {
		if slices.ContainsFunc(after.Keys, func(old api.IkernelKey) bool { return old.Name() == k.Name() && old.File != k.File }) {
			return nil, fmt.Errorf("%w: %s has a key %q of another file, and the tokens of that would be refused: "+
				"choose another ID, or remove the other one in the same step", ErrInvalid, r.Name, k.Name())
		}
		after.Keys = append(slices.DeleteFunc(after.Keys, func(old api.IkernelKey) bool { return old.Name() == k.Name() }), k)
	}
	if len(after.Keys) == 0 {
		return nil, fmt.Errorf("%w: %s would have no key left, and let nothing through: add another one in the same step, or detach it", ErrInvalid, r.Name)
	}
	return after.Keys, checkKeys(&after)
}

// checkKeys checks the keys of a request. Their files are read when they are used.
func checkKeys(r *api.IkernelRequest) error {
	switch is := kinds[r.Ikernel].keyed; {
	case !is && len(r.Keys) > 0:
		return fmt.Errorf("%w: %s has no keys: leave them out", ErrInvalid, r.Ikernel)
	case is && len(r.Keys) == 0:
		return fmt.Errorf("%w: %s checks requests by keys: give the file of one, at least", ErrInvalid, r.Ikernel)
	}
	seen := map[string]bool{}
	for _, k := range r.Keys {
		switch {
		case k.ID != "" && !KeyID.MatchString(k.ID):
			return fmt.Errorf("%w: %q is not the ID of a key: use 1 to 64 letters, digits, and the characters . _ -", ErrInvalid, k.ID)
		case !filepath.IsAbs(k.File):
			return fmt.Errorf("%w: %q is not where a key's file is: begin at the root directory", ErrInvalid, k.File)
		case seen[k.Name()]:
			return fmt.Errorf("%w: key %s is given twice: give each another ID", ErrInvalid, k.Name())
		}
		seen[k.Name()] = true
	}
	return nil
}
