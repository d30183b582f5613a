package nic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/lambdanic/lambdanic/internal/backend"
)

// ErrRefused says that an object is not one which this NIC will load; the wrapped text says why.
var ErrRefused = errors.New("lambda refused")

const (
	programName  = "lambda"
	requestsMap  = "ln_requests"
	keepMap      = ".bss.keep"
	rpcHeaderLen = 64
)

// allowedHelpers is all that a lambda may call. Everything that moves, sends or redirects packets is the root's.
var allowedHelpers = []asm.BuiltinFunc{
	asm.FnMapLookupElem, asm.FnMapUpdateElem, asm.FnMapDeleteElem, asm.FnKtimeGetNs, asm.FnKtimeGetCoarseNs,
	asm.FnGetPrandomU32, asm.FnGetSmpProcessorId, asm.FnXdpLoadBytes, asm.FnXdpStoreBytes, asm.FnCsumDiff,
}

// allowedMaps are the kinds of memory that a lambda may bring along.
var allowedMaps = []ebpf.MapType{ebpf.Array, ebpf.PerCPUArray, ebpf.Hash, ebpf.LRUHash, ebpf.PerCPUHash, ebpf.LRUCPUHash}

// jumpMayGoto is the opcode of may_goto (BPF_JMP | BPF_JCOND, include/uapi/linux/bpf.h), which no time bounds.
const jumpMayGoto = 0xe5

// readObject parses a lambda's object and checks what it is made of, whoever compiled it.
func readObject(d *backend.Deployment) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(d.BPF))
	if err != nil {
		return nil, fmt.Errorf("%w: not a BPF object: %w", ErrRefused, err)
	}
	prog := spec.Programs[programName]
	if prog == nil || prog.Type != ebpf.XDP || len(spec.Programs) != 1 {
		return nil, fmt.Errorf("%w: the object must hold one XDP program, %q: build it with the SDK's entry", ErrRefused, programName)
	}
	if err := checkInstructions(prog.Instructions); err != nil {
		return nil, err
	}
	return spec, checkMaps(spec, uint64(d.Spec.Limits.Memory))
}

func checkInstructions(insns asm.Instructions) error {
	for i, ins := range insns {
		switch {
		case ins.IsBuiltinCall() && !slices.Contains(allowedHelpers, asm.BuiltinFunc(ins.Constant)):
			return fmt.Errorf("%w: instruction %d calls helper %v, which is not open to lambdas", ErrRefused, i, asm.BuiltinFunc(ins.Constant))
		case ins.IsKfuncCall():
			return fmt.Errorf("%w: instruction %d calls a kernel function, which is not open to lambdas", ErrRefused, i)
		case ins.OpCode == jumpMayGoto:
			return fmt.Errorf("%w: instruction %d is an unmetered may_goto", ErrRefused, i)
		}
	}
	return nil
}

func checkMaps(spec *ebpf.CollectionSpec, limit uint64) error {
	var total uint64
	for name, m := range spec.Maps {
		if name == requestsMap {
			continue
		}
		if !slices.Contains(allowedMaps, m.Type) {
			return fmt.Errorf("%w: map %s has type %v, which is not open to lambdas", ErrRefused, name, m.Type)
		}
		if m.Pinning != ebpf.PinNone {
			return fmt.Errorf("%w: map %s asks to be pinned", ErrRefused, name)
		}
		total += uint64(m.MaxEntries) * uint64(m.KeySize+m.ValueSize)
	}
	if total > limit {
		return fmt.Errorf("%w: its objects take %d bytes, limits.memory is %d: raise the limit or shrink them", ErrRefused, total, limit)
	}
	return nil
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
