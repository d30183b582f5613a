// Package stage lets the NIC run a lambda that is a match stage (bpf/stage).
package stage

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/nic/load"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

//go:generate go tool bpf2go -target bpfel -no-strip -no-global-types -type ln_late -type ln_pass stage ../../../../bpf/stage/stage.bpf.c

var half = program.Half{
	Name: "stage", Object: _StageBytes, Spec: loadStage,
	Entries: map[string]program.Module{"ln_stage_module": program.RootLnModuleLN_MODULE_STAGE},
}

// Module is one NIC's.
type Module struct {
	module.Base
	nic  module.NIC
	maps stageMaps
}

var _ module.Module = (*Module)(nil)

// Late is a packet that goes on later (bpf/layout.h).
type Late = stageLnLate

// Pass is the hand-over between the NIC program and a stage that clones (bpf/layout.h).
type Pass = stageLnPass

// Half is bpf/stage.
func (*Module) Half() *program.Half { return &half }

// Counters are of packets that a stage sends.
func (*Module) Counters() []module.Counter {
	return []module.Counter{
		{Index: program.RootLnCounterLN_COUNT_ASTRAY, Name: "astray", Help: "Packets that a match stage sent where its spec does not allow."},
		{
			Index: program.RootLnCounterLN_COUNT_COPIES, Name: "copies",
			Help: "Packets that were cloned, then lost: pacer was slow, or they were too long.",
		},
	}
}

// Open implements module.Module.
func (m *Module) Open(nic module.NIC, half *ebpf.Collection) error {
	m.nic = nic
	return half.Assign(&m.maps)
}

// Close implements module.Module.
func (m *Module) Close() error { return m.maps.Close() }

// Check refuses a second match stage: each packet goes through one.
func (m *Module) Check(c *module.Change) error {
	isStage := c.Spec.P4 != ""
	if old := c.Previous; old != nil && old.IsStage() != isStage {
		return fmt.Errorf("%w: a lambda with a match stage of its own (p4) and one without cannot take over from each other: remove it first", load.ErrRefused)
	}
	for id, r := range m.nic.AllServing() {
		if isStage && r.IsStage() && id != c.Workload {
			return fmt.Errorf("%w: the NIC has a match stage already, workload %#x: remove it, or write both into one program", load.ErrRefused, id)
		}
	}
	return nil
}

// Take notes whether a stage may clone its packets.
func (m *Module) Take(c *module.Change) error {
	if c.Spec.P4 == "" {
		return nil
	}
	c.Next.Record.Mode = uint32(program.RootLnModeLN_MODE_STAGE)
	if c.Object.Maps[compiler.PassMap] != nil {
		c.Next.Record.Clones = 1
	}
	return nil
}

// Shared is the hand-over's map, for a stage that clones.
func (m *Module) Shared(object *ebpf.CollectionSpec) map[string]*ebpf.Map {
	if object.Maps[compiler.PassMap] == nil {
		return nil
	}
	return map[string]*ebpf.Map{compiler.PassMap: m.maps.LnPasses}
}
