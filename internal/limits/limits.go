// Package limits has what namespaces may do on a node: their shares of each CPU's time, and their quotas. That is in maps of BPF (bpf/namespaces.h), which the NIC
// programs and the meters of ikernels have together.
package limits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem limits -type ln_limit -type ln_rate_of -type ln_rate -type ln_resource -type ln_quota -type ln_allowance -type ln_links -type ln_share -type ln_budget -type ln_refusals_of -type ln_refusals -type ln_cpu -type ln_key -type ln_keys -type ln_network Raw limits.bpf.c

// Quota is what a namespace may have per second (bpf/layout.h).
type Quota = RawLnQuota

// Rate is one rate of a Quota (bpf/layout.h).
type Rate = RawLnRate

// Keys are what a namespace's packets are tagged with (bpf/layout.h).
type Keys = RawLnKeys

// Allowance is what a CPU has left of a namespace's rates (bpf/layout.h).
type Allowance = RawLnAllowance

// Budget is what may be spent on packets of namespaces (bpf/layout.h).
type Budget = RawLnBudget

// CPU is what a CPU has left of its Budget (bpf/layout.h).
type CPU = RawLnCpu

// Limits are the maps.
type Limits struct {
	RawMaps
	id ebpf.MapID // of LnQuotas
}

// New makes limits by which nobody has a share or a quota.
func New() (*Limits, error) { return open("") }

// Open opens the limits that are pinned in a directory, or makes and pins them.
func Open(dir string) (*Limits, error) { return open(dir) }

// open makes limits, or opens those in a directory where one is given.
func open(dir string) (*Limits, error) {
	spec, err := LoadRaw()
	if err != nil {
		return nil, err
	}
	coll := &ebpf.Collection{Maps: map[string]*ebpf.Map{}}
	defer coll.Close()
	for name := range new(Limits).Maps() {
		if coll.Maps[name], err = openMap(spec.Maps[name], dir); err != nil {
			return nil, fmt.Errorf("open the map %s: %w", name, err)
		}
	}
	l := &Limits{}
	if err := coll.Assign(&l.RawMaps); err != nil {
		return nil, err
	}
	info, err := l.LnQuotas.Info()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("look at the map of quotas: %w", err), l.Close())
	}
	l.id, _ = info.ID()
	return l, nil
}

// openMap opens a map or makes it. One of another layout is of an earlier version, whose NIC programs are being replaced.
func openMap(spec *ebpf.MapSpec, dir string) (*ebpf.Map, error) {
	if dir == "" {
		return ebpf.NewMap(spec)
	}
	spec.Pinning = ebpf.PinByName
	m, err := ebpf.NewMapWithOptions(spec, ebpf.MapOptions{PinPath: dir})
	if !errors.Is(err, ebpf.ErrMapIncompatible) {
		return m, err
	}
	if err := os.Remove(filepath.Join(dir, spec.Name)); err != nil {
		return nil, err
	}
	return ebpf.NewMapWithOptions(spec, ebpf.MapOptions{PinPath: dir})
}

// Maps are the maps by their names in C.
func (l *Limits) Maps() map[string]*ebpf.Map {
	return map[string]*ebpf.Map{
		"ln_quotas": l.LnQuotas, "ln_turns_taken": l.LnTurnsTaken, "ln_allowances": l.LnAllowances, "ln_budgets": l.LnBudgets, "ln_cpus": l.LnCpus,
		"ln_links_taken": l.LnLinksTaken, "ln_namespace_keys": l.LnNamespaceKeys, "ln_networks": l.LnNetworks, "ln_clients": l.LnClients,
	}
}

// Have says whether a map of this name is one of them.
func Have(name string) bool {
	_, ok := new(Limits).Maps()[name]
	return ok
}

// ID is the kernel's number for the limits: others have another one.
func (l *Limits) ID() ebpf.MapID { return l.id }
