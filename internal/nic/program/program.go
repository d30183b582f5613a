// Package program is the NIC program as the host loads it: the root, which parses, matches and serves, and the modules' halves in the
// kernel.
package program

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem root -type ln_version -type ln_limit -type ln_module -type ln_state -type ln_mode -type ln_protocol -type ln_counter -type ln_addresses -type ln_slot -type ln_split -type ln_service -type ln_stats -type ln_cost -type ln_request Root ../../../bpf/root.bpf.c

// Slot is the NIC program's record of a revision (bpf/layout.h).
type Slot = RootLnSlot

// Stats are a slot's counters, of one CPU (bpf/layout.h).
type Stats = RootLnStats

// Cost is what a slot's runs take on a CPU (bpf/layout.h).
type Cost = RootLnCost

// Addresses are those that the NIC answers at (bpf/layout.h).
type Addresses = RootLnAddresses

// Mode says how a lambda gets its messages (bpf/layout.h).
type Mode = RootLnMode

// State is what a dispatch word says (bpf/layout.h).
type State = RootLnState

// Module is the place of a module's program in ln_modules (bpf/maps.h).
type Module = RootLnModule

// A Half is a module's code in the kernel: bpf/NAME/NAME.bpf.c. It is loaded and verified by itself.
type Half struct {
	Name      string
	Object    []byte // ELF
	Spec      func() (*ebpf.CollectionSpec, error)
	Entries   map[string]Module // programs that packets are handed over to
	Constants map[string]any    // its own, by the names of their variables
}

// root is loaded first: it makes the maps that the other halves share.
var root = Half{Name: "root", Object: _RootBytes, Spec: LoadRoot}

// All are the halves of a NIC program with these modules.
func All(modules []*Half) []*Half { return append([]*Half{&root}, modules...) }

// Config are the settings that are fixed when the program is loaded.
type Config struct {
	Pins         string                     // a directory of a BPF file system
	Limits       string                     // another for limits; that of several NICs
	Slots        int                        // revisions that can be loaded at once
	UnknownError bool                       // answer unknown workloads with an error instead of handing them to the host
	Verify       bool                       // check UDP checksums of requests
	Alter        func(*ebpf.CollectionSpec) // tests: changes a half before it is loaded; may be nil
}

// Program is a loaded NIC program. Its programs and maps are pinned under their names in C.
type Program struct {
	RootMaps
	Root    *ebpf.Program
	Limits  *limits.Limits
	Generic *ebpf.Variable // nil if the program was adopted: then it is set already

	halves map[string]*ebpf.Collection
	shared map[string]*ebpf.Map // all maps of the root; they are closed with RootMaps and halves
}

// Half returns a half's collection, which the Program still owns; nil if there is no such half.
func (p *Program) Half(name string) *ebpf.Collection { return p.halves[name] }

// Digest identifies the NIC program that this binary loads.
func Digest(halves []*Half) string {
	sum := sha256.New()
	for _, h := range All(halves) {
		sum.Write(h.Object)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// constants are the constants of all halves and of this NIC.
func (c Config) constants() map[string]any {
	var secret [8]byte
	var callKey [16]byte
	_, _ = rand.Read(secret[:]) // never fails (crypto/rand)
	_, _ = rand.Read(callKey[:])
	return map[string]any{
		"ln_unknown_reply": flag(c.UnknownError), "ln_verify_checksum": flag(c.Verify),
		"ln_secret": binary.NativeEndian.Uint64(secret[:]), "ln_call_key": callKey,
	}
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// prepare reads a half for a NIC.
func (h *Half) prepare(c Config, constants map[string]any) (*ebpf.CollectionSpec, error) {
	spec, err := h.Spec()
	if err != nil {
		return nil, fmt.Errorf("read %s of the NIC program: %w", h.Name, err)
	}
	for _, name := range []string{"ln_programs", "ln_slots", "ln_slot_stats", "ln_costs"} {
		if shared := spec.Maps[name]; shared != nil {
			shared.MaxEntries = uint32(c.Slots)
		}
	}
	for _, values := range []map[string]any{constants, h.Constants} {
		for name, value := range values {
			v := spec.Variables[name]
			if v == nil {
				continue // another half's
			}
			if err := v.Set(value); err != nil {
				return nil, fmt.Errorf("set %s in %s of the NIC program: %w", name, h.Name, err)
			}
		}
	}
	xdp.Untie(spec)
	for name, m := range spec.Maps {
		if isPinned(name) {
			m.Pinning = ebpf.PinByName
		}
	}
	return spec, nil
}

// pinsOf is the directory of the pin of a map.
func pinsOf(name, pins, limitPins string) string {
	if limits.Have(name) {
		return limitPins
	}
	return pins
}

// isPinned is false for the maps of a half's variables, which are its own, and for that of the ikernels, which go with their daemon (bpf/demux.h).
func isPinned(name string) bool { return name[0] != '.' && name != ikernels }

const ikernels = "ln_ikernels"

// Load loads the NIC program and pins it. Halves share maps of the same name.
func Load(c Config, halves []*Half) (*Program, error) {
	for _, dir := range []string{c.Pins, c.Limits} {
		if err := makePins(dir); err != nil {
			return nil, fmt.Errorf("make pin directory: %w", err)
		}
	}
	constants := c.constants()
	p := &Program{halves: map[string]*ebpf.Collection{}}
	if err := p.openLimits(c.Limits); err != nil {
		return nil, err
	}
	for _, h := range All(halves) {
		if err := p.load(c, h, constants); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	if err := p.assign(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	for _, h := range halves {
		for name, index := range h.Entries {
			if err := p.LnModules.Put(uint32(index), uint32(p.halves[h.Name].Programs[name].FD())); err != nil {
				return nil, errors.Join(fmt.Errorf("put %s into its place: %w", name, err), p.Close())
			}
		}
	}
	return p, nil
}

// openLimits opens the limits, or makes them.
func (p *Program) openLimits(pins string) (err error) {
	if p.Limits, err = limits.Open(pins); err != nil {
		return fmt.Errorf("open what namespaces may do: %w", err)
	}
	return nil
}

// limitsOf are the limits that a half has.
func (p *Program) limitsOf(spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	all := p.Limits.Maps()
	maps.DeleteFunc(all, func(name string, _ *ebpf.Map) bool { return spec.Maps[name] == nil })
	return all
}

func (p *Program) load(c Config, h *Half, constants map[string]any) error {
	spec, err := h.prepare(c, constants)
	if err != nil {
		return err
	}
	if c.Alter != nil {
		c.Alter(spec)
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: c.Pins}, MapReplacements: p.limitsOf(spec)})
	if err != nil {
		return err
	}
	p.halves[h.Name] = coll
	for name, prog := range coll.Programs {
		if err := prog.Pin(filepath.Join(c.Pins, name)); err != nil {
			return fmt.Errorf("pin the program %s: %w", name, err)
		}
	}
	return nil
}

// Open opens a program that Load pinned in these directories.
func Open(pins, limitPins string, halves []*Half) (*Program, error) {
	p := &Program{halves: map[string]*ebpf.Collection{}}
	for _, h := range All(halves) {
		if err := p.open(pins, limitPins, h); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	if err := errors.Join(p.openIkernels(), p.openLimits(limitPins)); err != nil { // which are there, as a half has them
		return nil, errors.Join(err, p.Close())
	}
	if err := p.assign(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// openIkernels finds the map of ikernels among those of the root.
func (p *Program) openIkernels() error {
	r := p.halves[root.Name]
	info, err := r.Programs["ln_root"].Info()
	if err != nil {
		return fmt.Errorf("look at the NIC program: %w", err)
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return fmt.Errorf("open a map of the NIC program: %w", err)
		}
		if info, err := m.Info(); err == nil && info.Name == ikernels {
			r.Maps[ikernels] = m
			return nil
		}
		if err := m.Close(); err != nil {
			return err
		}
	}
	return fmt.Errorf("the NIC program has no map %s", ikernels)
}

func (p *Program) open(pins, limitPins string, h *Half) error {
	spec, err := h.Spec()
	if err != nil {
		return err
	}
	coll := &ebpf.Collection{Maps: map[string]*ebpf.Map{}, Programs: map[string]*ebpf.Program{}}
	p.halves[h.Name] = coll
	for name := range spec.Maps {
		if !isPinned(name) {
			continue
		}
		if coll.Maps[name], err = ebpf.LoadPinnedMap(filepath.Join(pinsOf(name, pins, limitPins), name), nil); err != nil {
			return fmt.Errorf("open the pinned map %s: %w", name, err)
		}
	}
	for name := range spec.Programs {
		if coll.Programs[name], err = ebpf.LoadPinnedProgram(filepath.Join(pins, name), nil); err != nil {
			return fmt.Errorf("open the pinned program %s: %w", name, err)
		}
	}
	return nil
}

func (p *Program) assign() error {
	r := p.halves[root.Name]
	p.shared = maps.Clone(r.Maps) // Assign takes them out
	p.Root, p.Generic = r.Programs["ln_root"], r.Variables["ln_generic"]
	return r.Assign(&p.RootMaps)
}

// Close releases the program, which stays loaded.
func (p *Program) Close() error {
	for _, c := range p.halves {
		c.Close()
	}
	if p.Limits == nil {
		return p.RootMaps.Close()
	}
	return errors.Join(p.RootMaps.Close(), p.Limits.Close())
}
