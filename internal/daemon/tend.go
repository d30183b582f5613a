package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/worker"
)

// How often the daemon looks whether its NICs are still there. It does not wait to be told: netlink drops messages that it
// has no room for (netlink(7)).
const (
	lookEvery  = time.Second
	retryAfter = time.Minute // at most, where a NIC does not come back
)

// tendNICs brings the NICs up again when one has lost its interface, until ctx ends.
func (d *Daemon) tendNICs(ctx context.Context) {
	if len(d.nics.list()) == 0 { // there never was one
		return
	}
	for wait := lookEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		why := d.lost()
		if why == nil {
			wait = lookEvery
			continue
		}
		d.cfg.Log.Warn("bringing the NIC up again; what its lambdas kept is lost", "because", why)
		if err := d.manager.Renew(ctx, d.renewNICs); err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("the NIC does not come back", "error", err)
		}
		wait = min(2*wait, retryAfter)
	}
}

// lost says why the NICs have to be brought up again, if they have.
func (d *Daemon) lost() error {
	all := d.nics.list()
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

// renewNICs adopts the NICs that are whole, and makes the others anew.
func (d *Daemon) renewNICs(ctx context.Context) error {
	w := d.manager.Worker
	w.SetPlace(worker.Place{Target: api.TargetNIC, Reason: "it is being brought up again"})
	if err := d.nics.close(); err != nil {
		d.cfg.Log.Warn("could not close a NIC", "error", err)
	}
	place, err := d.openNIC(ctx)
	if err != nil {
		place.Reason = reason(err)
	}
	w.SetPlace(place)
	return err
}
