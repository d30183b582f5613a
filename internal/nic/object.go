package nic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// ErrRefused says that an object is not one which this NIC will load; the wrapped text says why.
var ErrRefused = errors.New("lambda refused")

const (
	programName = "lambda"
	requestsMap = "ln_requests"
	keepMap     = ".data.keep"
)

// objects remembers the last objects that were read, by digest, so that swapping between versions which are there already
// does not parse them again.
type objects struct {
	specs map[[sha256.Size]byte]*ebpf.CollectionSpec
	order [][sha256.Size]byte // oldest first
}

const objectsRemembered = 16

// read parses a lambda's object and checks what it is made of, whoever compiled it.
func (o *objects) read(d *backend.Deployment) (*ebpf.CollectionSpec, error) {
	sum := sha256.Sum256(d.BPF)
	if spec := o.specs[sum]; spec != nil {
		return spec.Copy(), nil
	}
	_, memory, err := compiler.Inspect(d.BPF)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if limit := uint64(d.Spec.Limits.Memory); memory > limit {
		return nil, fmt.Errorf("%w: its objects take %d bytes, limits.memory is %d: raise the limit or shrink them", ErrRefused, memory, limit)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(d.BPF))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	dropZeros(spec)
	if o.specs == nil {
		o.specs = map[[sha256.Size]byte]*ebpf.CollectionSpec{}
	}
	if len(o.order) == objectsRemembered {
		delete(o.specs, o.order[0])
		o.order = o.order[1:]
	}
	o.specs[sum], o.order = spec, append(o.order, sum)
	return spec.Copy(), nil
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
			maps.DeleteFunc(spec.Variables, func(_ string, v *ebpf.VariableSpec) bool { return v.SectionName == name })
		}
	}
}

// keepLayout names the layout of a lambda's kept objects: two revisions share them only if it is the same. "" means none.
func keepLayout(spec *ebpf.CollectionSpec) string {
	m := spec.Maps[keepMap]
	if m == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d;", m.ValueSize)
	if sec, ok := m.Value.(*btf.Datasec); ok {
		for _, v := range sec.Vars {
			fmt.Fprintf(&b, "%d %d %s;", v.Offset, v.Size, typeText(v.Type, 0))
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
}

// typeText spells a type out, names and all, so that a changed struct does not pass for the old one.
func typeText(t btf.Type, depth int) string {
	if depth > 16 {
		return "..."
	}
	switch t := t.(type) {
	case *btf.Var:
		return t.Name + " " + typeText(t.Type, depth+1)
	case *btf.Array:
		return fmt.Sprintf("[%d]%s", t.Nelems, typeText(t.Type, depth+1))
	case *btf.Struct:
		return "struct{" + membersText(t.Members, depth) + "}"
	case *btf.Union:
		return "union{" + membersText(t.Members, depth) + "}"
	case *btf.Typedef:
		return typeText(t.Type, depth+1)
	case *btf.Const:
		return typeText(t.Type, depth+1)
	case *btf.Volatile:
		return typeText(t.Type, depth+1)
	case *btf.Pointer:
		return "*"
	}
	return fmt.Sprintf("%T %s", t, t.TypeName())
}

func membersText(members []btf.Member, depth int) string {
	var b strings.Builder
	for _, m := range members {
		fmt.Fprintf(&b, "%s@%d %s;", m.Name, m.Offset, typeText(m.Type, depth+1))
	}
	return b.String()
}
