package ikernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/ikernels"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/store"
)

// errNoLimits says that nothing could keep an ikernel in a share or a quota.
var errNoLimits = errors.New("the daemon has no NIC, whose program reckons what namespaces take: `lambdanic doctor` says what is missing; " +
	"or attach the ikernel without a namespace")

// Enter has an application's ikernel be of a namespace that there is, which cannot be removed until it leaves.
func (m *Manager) Enter(ctx context.Context, namespace, ikernel string) (_ *ikernels.Namespace, leave func(context.Context) error, _ error) {
	l := m.cfg.Limits()
	if l == nil {
		return nil, nil, errNoLimits
	}
	if _, err := m.cfg.Known(ctx, namespace); err != nil {
		return nil, nil, err
	}
	name := fmt.Sprint(m.entered.Add(1))
	m.living.Store(name, true) // before there is a record
	leave = func(ctx context.Context) error {
		m.living.Delete(name)
		return m.cfg.Store.DeleteApplicationIkernel(ctx, m.cfg.Node, name)
	}
	record := &store.Ikernel{IkernelRequest: api.IkernelRequest{Ikernel: ikernel, Name: name, Namespace: namespace}}
	if err := m.cfg.Store.PutApplicationIkernel(ctx, m.cfg.Node, record); err != nil {
		return nil, nil, errors.Join(err, leave(ctx)) // it may be there all the same
	}
	number, err := m.cfg.Known(ctx, namespace) // from now on the namespace cannot be removed
	if err != nil {
		return nil, nil, errors.Join(err, leave(ctx))
	}
	return &ikernels.Namespace{Name: namespace, Number: number, Limits: l}, leave, nil
}

// Forget removes the records of applications' ikernels that ended, or never came to be, while the store did not answer. It is called again and again, as the
// store may do late what it was asked for.
func (m *Manager) Forget(ctx context.Context) error {
	if m.entered.Load() == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	return m.cfg.Store.DeleteApplicationIkernels(ctx, m.cfg.Node, func(name string) bool {
		_, lives := m.living.Load(name)
		return !lives
	})
}

// storePatience is how long the store may take to number a namespace, or to forget ikernels.
const storePatience = 5 * time.Second

// meter makes a meter for an ikernel of a namespace; nil if it is of none.
func (c *Config) meter(namespace string) (*demux.Meter, error) {
	if namespace == "" {
		return nil, nil
	}
	l := c.Limits()
	if l == nil {
		return nil, errNoLimits
	}
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	number, err := c.Number(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return demux.NewMeter(number, l), nil
}

// unmetered says that the meter goes by limits that are no longer in force. While there are none, it stays.
func (a *attachment) unmetered(c *Config) error {
	if a.meter == nil {
		return nil
	}
	if l := c.Limits(); l == nil || a.meter.Follows(l) {
		return nil
	}
	return fmt.Errorf("the NIC was made anew, and with it the quotas of namespace %s", a.record.Namespace)
}

// metered is what the meter counted.
func (a *attachment) metered() ([]api.Counter, error) {
	if a.meter == nil {
		return nil, nil
	}
	c, err := a.meter.Counters()
	if err != nil {
		return nil, fmt.Errorf("read the counters of %s: %w", a.record.Name, err)
	}
	return MeterCounters(&c), nil
}

// MeterCounters are what a meter counted, as users see it.
func MeterCounters(c *demux.Metered) []api.Counter {
	return []api.Counter{
		{Name: "over_share", Value: c.OverShare, Help: "Packets that were dropped as its namespace had had its share."},
		{Name: "over_bandwidth", Value: c.OverBandwidth, Help: "Packets that were dropped as its namespace's answers had had their share."},
		{Name: "over_quota", Value: c.OverQuota, Help: "Packets that were dropped as its namespace was over a quota."},
		{Name: "charged_ns", Value: c.ChargedNs, Help: "Time charged to its namespace, in ns."},
	}
}
