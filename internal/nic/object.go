package nic

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/load"
)

// ErrRefused says that this NIC does not load an object file; the wrapped text says why.
var ErrRefused = load.ErrRefused

// objectFile is a lambda's object file after parsing.
type objectFile struct {
	spec    *ebpf.CollectionSpec
	layouts api.Layouts
	members map[string]api.Layouts // of a fused program's members
	memory  uint64
	bounds  map[string]metering.Bound
}

func (o objectFile) copy() objectFile {
	o.spec = o.spec.Copy()
	return o
}

// checkMemory refuses an object file that takes more memory than a limit.
func (o objectFile) checkMemory(limit uint64) error {
	if o.memory > limit {
		return fmt.Errorf("%w: its global variables take %d bytes, limits.memory is %d: raise the limit or shrink them", ErrRefused, o.memory, limit)
	}
	return nil
}

// checkTime refuses loaded programs whose loops can take longer than a limit, if only the verifier bounds these loops.
func (o objectFile) checkTime(coll *ebpf.Collection, limit time.Duration) error {
	for name, p := range coll.Programs {
		info, err := p.Info()
		if err != nil {
			return fmt.Errorf("ask how much of %s was verified: %w", name, err)
		}
		walked, ok := info.VerifiedInstructions()
		if !ok {
			return fmt.Errorf("ask how much of %s was verified: the kernel does not tell: it takes Linux 5.16", name)
		}
		if err := o.bounds[name].CheckWalked(walked, limit); err != nil {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	return nil
}

// objectFiles remembers the last object files that were parsed, by digest, so that swapping between versions does not parse them
// again.
type objectFiles struct {
	known map[objectKey]objectFile
	order []objectKey // oldest first
}

// objectKey is an object file's digest, and whether it was inspected as a match stage.
type objectKey struct {
	sum   [sha256.Size]byte
	stage bool
}

const objectsRemembered = 16

// read parses a lambda's object file and checks its contents, whoever compiled it.
func (o *objectFiles) read(d *backend.Deployment) (objectFile, error) {
	key := objectKey{sha256.Sum256(d.BPF), d.Spec.P4 != ""}
	limit := uint64(d.Spec.Limits.Memory)
	if known, ok := o.known[key]; ok {
		return known.copy(), known.checkMemory(limit)
	}
	inspect := compiler.Inspect
	if key.stage {
		inspect = compiler.InspectStage
	}
	contents, err := inspect(d.BPF)
	if err != nil {
		return objectFile{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	obj := objectFile{layouts: contents.Layouts, members: contents.Members, memory: contents.Memory, bounds: contents.Bounds}
	if err := obj.checkMemory(limit); err != nil {
		return objectFile{}, err
	}
	if obj.spec, err = ebpf.LoadCollectionSpecFromReader(bytes.NewReader(d.BPF)); err != nil {
		return objectFile{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	dropZeros(obj.spec)
	if o.known == nil {
		o.known = map[objectKey]objectFile{}
	}
	if len(o.order) == objectsRemembered {
		delete(o.known, o.order[0])
		o.order = o.order[1:]
	}
	o.known[key], o.order = obj, append(o.order, key)
	return obj.copy(), nil
}

// dropZeros leaves out the contents of maps that are all zero, as new maps are anyway: this saves copying megabytes.
func dropZeros(spec *ebpf.CollectionSpec) {
	for name, m := range spec.Maps {
		if m.Type != ebpf.Array || len(m.Contents) != 1 {
			continue
		}
		content, ok := m.Contents[0].Value.([]byte)
		frozen := m.Flags&unix.BPF_F_RDONLY_PROG != 0
		if ok && !frozen && len(bytes.Trim(content, "\x00")) == 0 {
			m.Contents = nil
			dropVariables(spec, name)
		}
	}
}

func dropVariables(spec *ebpf.CollectionSpec, section string) {
	maps.DeleteFunc(spec.Variables, func(_ string, v *ebpf.VariableSpec) bool { return v.SectionName == section })
}

// takeOver replaces maps of a new revision by a running one's, and leaves out the migration function's maps and program if it is
// not needed.
func (o objectFile) takeOver(h backend.Handover, old *revision) (replace map[string]*ebpf.Map) {
	replace = map[string]*ebpf.Map{}
	if h.Keep {
		replace[compiler.KeptSection] = old.kept
	}
	switch h.Migrate {
	case backend.MigrateByCall:
		replace[compiler.OldSection] = old.migrated
		return replace
	case backend.MigrateAsIs:
		replace[compiler.MigratedSection] = old.migrated
	}
	delete(o.spec.Programs, compiler.MigrateProgram)
	delete(o.spec.Maps, compiler.OldSection)
	dropVariables(o.spec, compiler.OldSection)
	return replace
}
