package demux

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem meter -type ln_metered meter meter.bpf.c

// A Meter keeps an ikernel in the share and the quotas of a namespace (meter.bpf.c).
type Meter struct {
	namespace uint32
	limits    *limits.Limits
	objects   meterObjects
}

// NewMeter makes a meter for a namespace, by its number. Put it before an ikernel by Server.Meter.
func NewMeter(namespace uint32, l *limits.Limits) *Meter {
	return &Meter{namespace: namespace, limits: l}
}

// Metered is what a meter counted.
type Metered struct {
	ChargedNs            uint64
	OverShare, OverQuota uint64 // packets that were dropped
}

// load loads the program, which stands before an ikernel whose server is at these addresses.
func (m *Meter) load(ikernel *ebpf.Program, addrs []netip.Addr, log *slog.Logger) error {
	spec, err := loadMeter()
	if err != nil {
		return err
	}
	if err := errors.Join(SetServer(spec, addrs, log), spec.Variables["ln_namespace"].Set(m.namespace)); err != nil {
		return err
	}
	kernel.Fit(spec)
	xdp.Untie(spec)
	if err := spec.LoadAndAssign(&m.objects, &ebpf.CollectionOptions{MapReplacements: m.limits.Maps()}); err != nil {
		return kernel.Fails("does not load the meter of an ikernel", err)
	}
	if err := m.objects.LnNext.Put(uint32(0), ikernel); err != nil {
		return errors.Join(kernel.Fails("does not let a meter hand packets over to its ikernel", err), m.Close())
	}
	return nil
}

// Follows says whether these are the limits that the meter goes by.
func (m *Meter) Follows(l *limits.Limits) bool { return l.ID() == m.limits.ID() }

// Counters reads what all CPUs counted.
func (m *Meter) Counters() (sum Metered, err error) {
	var each []meterLnMetered
	if err := m.objects.LnMeters.Lookup(uint32(0), &each); err != nil {
		return sum, fmt.Errorf("read the counters of a meter: %w", err)
	}
	for _, c := range each {
		sum.ChargedNs += c.ChargedNs
		sum.OverShare += c.OverShare
		sum.OverQuota += c.OverQuota
	}
	return sum, nil
}

// Close ends the meter, which is before no ikernel any more.
func (m *Meter) Close() error { return m.objects.Close() }
