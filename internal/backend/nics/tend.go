package nics

import (
	"context"
	"errors"
	"time"

	"github.com/lambdanic/lambdanic/internal/backend"
)

// How often Tend checks whether the NICs are still there. It does not rely on notifications: netlink drops messages that it has no
// room for (netlink(7)).
const (
	lookEvery  = time.Second
	retryAfter = time.Minute // at most, if a NIC does not come back
)

// Tend brings the NICs up again when one has lost its interface. What their lambdas kept is lost.
func (t *Target) Tend(ctx context.Context, replace backend.Replace) {
	if len(t.nics.all()) == 0 { // this node has no NIC
		return
	}
	for wait := lookEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		why := t.lost()
		if why == nil {
			wait = lookEvery
			continue
		}
		t.site.Log.Warn("bringing the NIC up again; what its lambdas kept is lost", "because", why)
		if err := replace(ctx, t.renew); err != nil && ctx.Err() == nil {
			t.site.Log.Error("the NIC does not come back", "error", err)
		}
		wait = min(2*wait, retryAfter)
	}
}

// lost says why the NICs have to be brought up again; nil: they do not.
func (t *Target) lost() error {
	all := t.nics.all()
	if len(all) == 0 {
		return errors.New("it did not come back")
	}
	for _, n := range all {
		if err := n.Attached(); err != nil {
			return err
		}
	}
	return nil
}

// renew adopts the NICs that are intact, and makes the others anew.
func (t *Target) renew(ctx context.Context) (backend.Place, error) {
	if err := t.nics.close(); err != nil {
		t.site.Log.Warn("could not close a NIC", "error", err)
	}
	place, err := t.open(ctx)
	if err != nil {
		return unavailable(err), err
	}
	return place, nil
}
