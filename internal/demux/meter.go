package demux

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem meter -type ln_metered meter meter.bpf.c

// A Meter keeps an ikernel in the share and the quotas of a namespace (bpf/meter.h).
type Meter struct {
	namespace uint32
	limits    *limits.Limits
	parts     struct {
		Program *ebpf.Program `ebpf:"ln_meter"`
		Next    *ebpf.Map     `ebpf:"ln_next"`
		Meters  *ebpf.Map     `ebpf:"ln_meters"`
	}
}

// NewMeter makes a meter for a namespace, by its number. Put it before an ikernel by Server.Meter, or by Before.
func NewMeter(namespace uint32, l *limits.Limits) *Meter {
	return &Meter{namespace: namespace, limits: l}
}

// Metered is what a meter counted.
type Metered struct {
	ChargedNs                           uint64
	OverShare, OverBandwidth, OverQuota uint64 // packets that were dropped
}

// Before puts the meter before an ikernel, and returns the program that stands there: that of a spec whose source includes bpf/meter.h, with these maps besides
// those of the limits.
func (m *Meter) Before(ikernel *ebpf.Program, spec *ebpf.CollectionSpec, with map[string]*ebpf.Map) (*ebpf.Program, error) {
	if err := spec.Variables["ln_namespace"].Set(m.namespace); err != nil {
		return nil, err
	}
	kernel.Fit(spec)
	xdp.Untie(spec)
	all := m.limits.Maps()
	maps.Copy(all, with)
	if err := spec.LoadAndAssign(&m.parts, &ebpf.CollectionOptions{MapReplacements: all}); err != nil {
		return nil, kernel.Fails("does not load the meter of an ikernel", err)
	}
	if err := m.parts.Next.Put(uint32(0), ikernel); err != nil {
		return nil, errors.Join(kernel.Fails("does not let a meter hand packets over to its ikernel", err), m.Close())
	}
	return m.parts.Program, nil
}

// load loads the program, which stands before an ikernel whose server is at these addresses.
func (m *Meter) load(ikernel *ebpf.Program, addrs []netip.Addr, log *slog.Logger) (*ebpf.Program, error) {
	spec, err := loadMeter()
	if err != nil {
		return nil, err
	}
	if err := SetServer(spec, addrs, log); err != nil {
		return nil, err
	}
	return m.Before(ikernel, spec, nil)
}

// Follows says whether these are the limits that the meter goes by.
func (m *Meter) Follows(l *limits.Limits) bool { return l.ID() == m.limits.ID() }

// Counters reads what all CPUs counted.
func (m *Meter) Counters() (sum Metered, err error) {
	var each []meterLnMetered
	if err := m.parts.Meters.Lookup(uint32(0), &each); err != nil {
		return sum, fmt.Errorf("read the counters of a meter: %w", err)
	}
	for _, c := range each {
		sum.ChargedNs += c.ChargedNs
		sum.OverShare += c.OverShare
		sum.OverBandwidth += c.OverBandwidth
		sum.OverQuota += c.OverQuota
	}
	return sum, nil
}

// Close ends the meter, which is before no ikernel any more.
func (m *Meter) Close() error {
	return errors.Join(m.parts.Program.Close(), m.parts.Next.Close(), m.parts.Meters.Close())
}
