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

// ErrRefused says that an object is not one which this NIC will load; the wrapped text says why.
var ErrRefused = load.ErrRefused

// object is a lambda's object as it was read.
type object struct {
	spec    *ebpf.CollectionSpec
	layouts api.Layouts
	members map[string]api.Layouts // of a fused program's
	memory  uint64
	bounds  map[string]metering.Bound
}

func (o object) copy() object {
	o.spec = o.spec.Copy()
	return o
}

// checkMemory refuses an object that takes more memory than a limit.
func (o object) checkMemory(limit uint64) error {
	if o.memory > limit {
		return fmt.Errorf("%w: its objects take %d bytes, limits.memory is %d: raise the limit or shrink them", ErrRefused, o.memory, limit)
	}
	return nil
}

// checkTime refuses programs, which the kernel has loaded, whose loops can take longer than a limit, where the verifier alone
// bounds these.
func (o object) checkTime(coll *ebpf.Collection, limit time.Duration) error {
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

// objects remembers the last objects that were read, by digest, so that swapping between versions which are there already
// does not parse them again.
type objects struct {
	known map[objectKey]object
	order []objectKey // oldest first
}

// objectKey is an object, and as what it was inspected.
type objectKey struct {
	sum   [sha256.Size]byte
	stage bool
}

const objectsRemembered = 16

// read parses a lambda's object and checks what it is made of, whoever compiled it.
func (o *objects) read(d *backend.Deployment) (object, error) {
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
		return object{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	obj := object{layouts: contents.Layouts, members: contents.Members, memory: contents.Memory, bounds: contents.Bounds}
	if err := obj.checkMemory(limit); err != nil {
		return object{}, err
	}
	if obj.spec, err = ebpf.LoadCollectionSpecFromReader(bytes.NewReader(d.BPF)); err != nil {
		return object{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	dropZeros(obj.spec)
	if o.known == nil {
		o.known = map[objectKey]object{}
	}
	if len(o.order) == objectsRemembered {
		delete(o.known, o.order[0])
		o.order = o.order[1:]
	}
	o.known[key], o.order = obj, append(o.order, key)
	return obj.copy(), nil
}

// dropZeros leaves out the contents of maps that are all zero, as new maps are: megabytes that would only be copied.
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

// takeOver puts the maps of a running revision in the place of a new one's own, and leaves out what is for a migration by
// function where there is none.
func (o object) takeOver(h backend.Handover, old *revision) (replace map[string]*ebpf.Map) {
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
