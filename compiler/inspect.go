package compiler

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/check/helper"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/check/percpu"
	"github.com/lambdanic/lambdanic/compiler/check/pointers"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// ErrForbidden says that a BPF object file holds something that a lambda may not do.
var ErrForbidden = errors.New("forbidden in a lambda")

// The programs that an object file may hold (sdk/lambda_entry.h, LAMBDA_MIGRATE in sdk/lambda.h).
const (
	Program        = "lambda"
	MigrateProgram = "lambda_migrate" // runs once, when the lambda takes over from an earlier revision
)

// The maps that hand over between the NIC program and what it runs. They are not a lambda's own.
const (
	SharedMap = "ln_requests"
	PassMap   = "ln_passes" // of match stages that clone packets (sdk/pif/pif_pass.h)
)

const sectionName = "xdp.frags"

// foreign is the map in its own object file that each program may not touch.
var foreign = map[string]string{Program: OldSection, MigrateProgram: SharedMap}

// mapTypes are the kinds of maps that a lambda may declare.
var mapTypes = []ebpf.MapType{ebpf.Array, ebpf.PerCPUArray, ebpf.Hash, ebpf.PerCPUHash, ebpf.LRUHash, ebpf.LRUCPUHash}

// mapFlags are the flags of sections, which a lambda may have as well.
const mapFlags = unix.BPF_F_RDONLY_PROG | unix.BPF_F_MMAPABLE

// Contents is what Inspect finds in a BPF object file.
type Contents struct {
	Maps    []api.Map
	Memory  uint64 // bytes that the maps take
	Layouts api.Layouts
	Members map[string]api.Layouts    // of the members of a fused program that keep something, by their names in it
	Bounds  map[string]metering.Bound // how long each program runs
}

// Inspect checks that a BPF object file is a lambda and nothing else, and says what is in it. The verifier proves that a program does no
// harm to the kernel; Inspect, that it does none to its neighbours. It trusts nothing in the object file, whoever compiled it.
func Inspect(object []byte) (Contents, error) { return inspect(object, false) }

// InspectStage is Inspect for a lambda with its own match stage. It sees whole packets, so it may also move their beginning. The room
// before a packet can hold leftovers of an earlier packet.
func InspectStage(object []byte) (Contents, error) {
	return inspect(object, true)
}

func inspect(object []byte, stage bool) (c Contents, err error) {
	if err := checkSymbols(object); err != nil {
		return c, err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return c, fmt.Errorf("inspect BPF object: %w: leave sections of your own out, and build it again", err)
	}
	if err := checkPrograms(spec, stage); err != nil {
		return c, err
	}
	if c.Bounds, err = Fit(spec, 1); err != nil {
		return c, err
	}
	for name, m := range spec.Maps {
		if name == SharedMap || stage && name == PassMap {
			continue
		}
		if err := checkMap(m); err != nil {
			return c, fmt.Errorf("%w: %s%w", ErrForbidden, firstUse(spec, name), err)
		}
		c.Maps = append(c.Maps, api.Map{
			Name: name, Type: m.Type.String(), KeySize: m.KeySize, ValueSize: m.ValueSize, MaxEntries: m.MaxEntries,
		})
		c.Memory = min(c.Memory, math.MaxUint64-mapMemory(m)) + mapMemory(m) // saturates: what does not fit is too much
	}
	slices.SortFunc(c.Maps, func(a, b api.Map) int { return strings.Compare(a.Name, b.Name) })
	if c.Layouts, err = layouts(spec); err == nil {
		c.Members, err = memberLayouts(spec)
	}
	return c, err
}

// Fit adapts an object file to a number of CPUs, checks the programs with the numbers that this put into them, and says how long each runs.
// A branch that is never taken for one CPU may be taken for two.
func Fit(spec *ebpf.CollectionSpec, cpus int) (map[string]metering.Bound, error) {
	if err := percpu.Fit(spec, cpus); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	bounds, err := metering.Check(spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	for _, program := range spec.Programs {
		if i, err := pointers.Check(spec, program); err != nil {
			return nil, fmt.Errorf("%w: %s%w", ErrForbidden, place(program.Instructions, i), err)
		}
	}
	return bounds, nil
}

// checkSymbols refuses symbols that are not defined in the object file: functions and variables of the kernel.
func checkSymbols(object []byte) error {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("inspect BPF object: %w", err)
	}
	symbols, err := file.Symbols()
	if err != nil {
		return fmt.Errorf("inspect BPF object: %w", err)
	}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF && s.Name != "" {
			at := ""
			if spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object)); err == nil {
				at = firstUse(spec, s.Name)
			}
			return fmt.Errorf("%w: %s%s is declared, but nowhere defined: define it in the source, or leave it out", ErrForbidden, at, s.Name)
		}
	}
	return nil
}

func checkPrograms(spec *ebpf.CollectionSpec, stage bool) error {
	for name, program := range spec.Programs {
		if foreign[name] == "" || program.SectionName != sectionName {
			return fmt.Errorf("%w: %sa program %q in section %q: leave the section out, a lambda has one entry",
				ErrForbidden, place(program.Instructions, 0), name, program.SectionName)
		}
		for i := range program.Instructions {
			if err := checkInstruction(spec, stage, name, &program.Instructions[i]); err != nil {
				return fmt.Errorf("%w: %s%w", ErrForbidden, place(program.Instructions, i), err)
			}
		}
	}
	if spec.Programs[Program] == nil {
		return fmt.Errorf("%w: the object holds no program %q", ErrForbidden, Program)
	}
	return nil
}

func checkInstruction(spec *ebpf.CollectionSpec, stage bool, program string, ins *asm.Instruction) error {
	switch {
	case ins.IsBuiltinCall():
		fn := asm.BuiltinFunc(ins.Constant)
		if h, ok := helper.All[fn]; !ok || h.Stage && !stage {
			return fmt.Errorf("a call of the kernel's %s: docs/language.md lists what a lambda may call", diagnose.Helper(fn))
		}
	case ins.IsKfuncCall():
		return errors.New("a call of a function of the kernel's own: docs/language.md lists what a lambda may call")
	case ins.OpCode.IsDWordLoad() && ins.Src != 0 && !ins.IsLoadOfFunctionPointer():
		// Anything else is a variable of the kernel, or a file descriptor of the loader.
		if !ins.IsLoadFromMap() || spec.Maps[ins.Reference()] == nil || ins.Reference() == foreign[program] {
			return errors.New("a load of a foreign object: name the lambda's own")
		}
	}
	return nil
}

// place says where an instruction comes from, to begin a message with.
func place(insns asm.Instructions, i int) string {
	p := diagnose.PlaceOf(insns, i)
	switch {
	case p.File == "":
		return ""
	case p.Text == "":
		return fmt.Sprintf("%v: ", p)
	default:
		return fmt.Sprintf("%v: in %q: ", p, strings.TrimSpace(p.Text))
	}
}

// firstUse is the place of the first instruction that refers to a map or variable.
func firstUse(spec *ebpf.CollectionSpec, name string) string {
	if program := spec.Programs[Program]; program != nil {
		for i := range program.Instructions {
			if ins := &program.Instructions[i]; ins.Reference() == name {
				return place(program.Instructions, i)
			}
		}
	}
	return ""
}

func checkMap(m *ebpf.MapSpec) error {
	if m.Pinning != ebpf.PinNone {
		return fmt.Errorf("the map %q is pinned, so that it could be another lambda's: leave pinning out", m.Name)
	}
	if m.Flags&^mapFlags != 0 {
		return fmt.Errorf("the map %q has the flags %#x: leave them out", m.Name, m.Flags&^mapFlags)
	}
	if !slices.Contains(mapTypes, m.Type) {
		return fmt.Errorf("the map %q is a %v: use one of %v", m.Name, m.Type, mapTypes)
	}
	return nil
}

// Bytes that the kernel adds to an element (struct htab_elem in kernel/bpf/hashtab.c, rounded up) and to a bucket (struct bucket there).
const (
	elementOverhead = 64
	bucketHead      = 16
)

// mapMemory returns about what the kernel takes for a map. A per-CPU map counts once, so that the figure is the same on each machine.
func mapMemory(m *ebpf.MapSpec) uint64 {
	n := uint64(m.MaxEntries)
	value := roundUp8(m.ValueSize)
	switch m.Type {
	case ebpf.Array, ebpf.PerCPUArray: // the key is an index
		return n * value
	default:
		buckets := uint64(1) << bits.Len64(max(n, 1)-1)
		return n*(roundUp8(m.KeySize)+value+elementOverhead) + buckets*bucketHead
	}
}

// largestObjects names the few largest global variables of a BPF object file, with their bytes.
func largestObjects(object []byte) string {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return "unknown"
	}
	sizes := map[string]uint64{}
	for name, m := range spec.Maps {
		section, err := objectsIn(m)
		switch {
		case strings.HasPrefix(name, percpu.Section):
		case spec.Maps[percpu.Section+strings.TrimPrefix(name, ".data")] != nil:
			sizes["heap and locals, and what is used by its address"] += mapMemory(m)
		case err != nil:
			sizes[name] = mapMemory(m)
		default:
			for _, v := range section.Vars {
				sizes[v.Type.TypeName()] = uint64(v.Size)
			}
		}
	}
	delete(sizes, SharedMap)
	delete(sizes, PassMap)
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, sizes[name])
	}
	return strings.Join(names[:min(3, len(names))], ", ")
}

func roundUp8(n uint32) uint64 { return (uint64(n) + 7) &^ 7 }
