package nic

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

//go:generate -command bpf go tool bpf2go -cc clang-19 -target bpfel -no-strip -cflags "-O2 -g -Wall -Werror -Wno-address-of-packed-member -mcpu=v3 -I/usr/include/x86_64-linux-gnu"
//go:generate bpf -output-stem root -type ln_version -type ln_limit -type ln_module -type ln_state -type ln_mode -type ln_protocol -type ln_counter -type ln_addresses -type ln_slot -type ln_split -type ln_service -type ln_stats -type ln_request root ../../bpf/root.bpf.c
//go:generate bpf -output-stem messages -type ln_message_state -type ln_message -type ln_bucket messages ../../bpf/messages/messages.bpf.c
//go:generate bpf -output-stem once once ../../bpf/once/once.bpf.c
//go:generate bpf -output-stem calls -type ln_call_state -type ln_call calls ../../bpf/calls/calls.bpf.c
//go:generate bpf -output-stem stage stage ../../bpf/stage/stage.bpf.c
//go:generate bpf -output-stem rdma -type ln_qp_state -type ln_qp -type ln_region rdma ../../bpf/rdma/rdma.bpf.c

// module is a part of the NIC program that is compiled, loaded and verified by itself: bpf/root.bpf.c, or bpf/NAME/NAME.bpf.c.
type module struct {
	name  string
	bytes []byte // of the ELF object
	spec  func() (*ebpf.CollectionSpec, error)
	entry map[string]rootLnModule // of its programs, those that packets are handed over to
}

// modules are all there are. The root is the first: it makes the maps that the others share.
var modules = []module{
	{"root", _RootBytes, loadRoot, nil},
	{"messages", _MessagesBytes, loadMessages, map[string]rootLnModule{"ln_messages_module": rootLnModuleLN_MODULE_MESSAGES}},
	{"once", _OnceBytes, loadOnce, map[string]rootLnModule{"ln_once_module": rootLnModuleLN_MODULE_ONCE}},
	{"calls", _CallsBytes, loadCalls, map[string]rootLnModule{"ln_calls_module": rootLnModuleLN_MODULE_CALLS}},
	{"stage", _StageBytes, loadStage, map[string]rootLnModule{"ln_stage_module": rootLnModuleLN_MODULE_STAGE}},
	{"rdma", _RdmaBytes, loadRdma, map[string]rootLnModule{
		"ln_rdma_module": rootLnModuleLN_MODULE_RDMA, "ln_regions_module": rootLnModuleLN_MODULE_REGIONS,
	}},
}

// program is the NIC program as it is loaded: what this package reads and writes of it.
type program struct {
	rootMaps
	messages messagesMaps
	calls    callsMaps
	stage    stageMaps
	rdma     rdmaMaps
	root     *ebpf.Program
	generic  *ebpf.Variable // nil where the program was adopted: it is set by then

	parts map[string]*ebpf.Collection // what else there is, by module
}

// assign puts everything in its place.
func (p *program) assign() error {
	p.root = p.parts["root"].Programs["ln_root"]
	p.generic = p.parts["root"].Variables["ln_generic"]
	return errors.Join(
		p.parts["root"].Assign(&p.rootMaps), p.parts["messages"].Assign(&p.messages), p.parts["calls"].Assign(&p.calls),
		p.parts["stage"].Assign(&p.stage), p.parts["rdma"].Assign(&p.rdma))
}

// enter puts the modules' programs where the root finds them.
func (p *program) enter() error {
	for _, m := range modules {
		for name, index := range m.entry {
			if err := p.LnModules.Put(uint32(index), uint32(p.parts[m.name].Programs[name].FD())); err != nil {
				return fmt.Errorf("put %s into its place: %w", name, err)
			}
		}
	}
	return nil
}

func (p *program) Close() error {
	for _, c := range p.parts {
		c.Close()
	}
	return errors.Join(p.rootMaps.Close(), p.messages.Close(), p.calls.Close(), p.stage.Close(), p.rdma.Close())
}

// programDigest names the NIC program that this binary carries.
func programDigest() string {
	sum := sha256.New()
	for _, m := range modules {
		sum.Write(m.bytes)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// constants are what is fixed when the program is loaded, by the names of their variables.
func (c Config) constants() map[string]any {
	var secret [8]byte
	var callKey [16]byte
	_, _ = rand.Read(secret[:]) // never fails (crypto/rand)
	_, _ = rand.Read(callKey[:])
	return map[string]any{
		"ln_unknown_reply": flag(c.UnknownError), "ln_verify_checksum": flag(c.Verify),
		"ln_secret": binary.NativeEndian.Uint64(secret[:]), "ln_call_key": callKey, "ln_crc_tables": crcTables(),
	}
}

// prepare reads a module, for this NIC.
func (m module) prepare(c Config, constants map[string]any) (*ebpf.CollectionSpec, error) {
	spec, err := m.spec()
	if err != nil {
		return nil, fmt.Errorf("read the NIC program's module %s: %w", m.name, err)
	}
	for _, name := range []string{"ln_programs", "ln_slots", "ln_slot_stats"} {
		if shared := spec.Maps[name]; shared != nil {
			shared.MaxEntries = uint32(c.Slots)
		}
	}
	for name, v := range spec.Variables {
		if value, ok := constants[name]; ok {
			if err := v.Set(value); err != nil {
				return nil, fmt.Errorf("set %s of the NIC program's module %s: %w", name, m.name, err)
			}
		}
	}
	for name, shared := range spec.Maps {
		if !isSection(name) {
			shared.Pinning = ebpf.PinByName
		}
	}
	return spec, nil
}

// isSection is true for the maps of a module's variables, which are its own and not pinned.
func isSection(name string) bool { return name[0] == '.' }

// loadProgram loads the NIC program with this NIC's constants, and pins its maps and programs by their names. A map of two modules is one.
func loadProgram(c Config) (*program, error) {
	if err := os.MkdirAll(c.pins(), 0o700); err != nil {
		return nil, fmt.Errorf("make pin directory: %w", err)
	}
	constants := c.constants()
	p := &program{parts: map[string]*ebpf.Collection{}}
	for _, m := range modules {
		spec, err := m.prepare(c, constants)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		if c.alter != nil {
			c.alter(spec)
		}
		coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: c.pins()}})
		if err != nil {
			return nil, errors.Join(c.refused(err), p.Close())
		}
		p.parts[m.name] = coll
		for name, prog := range coll.Programs {
			if err := prog.Pin(filepath.Join(c.pins(), name)); err != nil {
				return nil, errors.Join(fmt.Errorf("pin the program %s: %w", name, err), p.Close())
			}
		}
	}
	if err := errors.Join(p.assign(), p.enter()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// openProgram opens what loadProgram pinned.
func openProgram(dir string) (*program, error) {
	p := &program{parts: map[string]*ebpf.Collection{}}
	for _, m := range modules {
		spec, err := m.spec()
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		coll := &ebpf.Collection{Maps: map[string]*ebpf.Map{}, Programs: map[string]*ebpf.Program{}}
		p.parts[m.name] = coll
		for name := range spec.Maps {
			if isSection(name) {
				continue
			}
			if coll.Maps[name], err = ebpf.LoadPinnedMap(filepath.Join(dir, name), nil); err != nil {
				return nil, errors.Join(fmt.Errorf("open pinned map %s: %w", name, err), p.Close())
			}
		}
		for name := range spec.Programs {
			if coll.Programs[name], err = ebpf.LoadPinnedProgram(filepath.Join(dir, name), nil); err != nil {
				return nil, errors.Join(fmt.Errorf("open the pinned program %s: %w", name, err), p.Close())
			}
		}
	}
	if err := p.assign(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}
