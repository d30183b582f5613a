package compiler

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/lambdanic/lambdanic/api"
)

// The sections of a BPF object file, each of them a map, whose objects do not start anew with a revision (sdk/lambda.h).
const (
	KeptSection     = ".data.keep"
	MigratedSection = ".data.migrate"
	OldSection      = ".data.migrate_old" // stands for an earlier revision's MigratedSection
)

// KeptSectionOf is KeptSection for a member of a fused program (compiler/passes/coalesce_member.cpp).
func KeptSectionOf(member string) string { return KeptSection + "_" + member }

// layouts describes the state in a BPF object file, whose type information gives the layout of each object.
func layouts(spec *ebpf.CollectionSpec) (s api.Layouts, err error) {
	for _, part := range []struct {
		section string
		layout  *string
	}{{KeptSection, &s.Kept}, {MigratedSection, &s.Migrated}, {OldSection, &s.From}} {
		m := spec.Maps[part.section]
		if m == nil {
			continue
		}
		objects, err := objectsIn(m)
		if err != nil {
			return s, err
		}
		var layout btf.Type = objects
		if part.section != KeptSection {
			if err := single(len(objects.Vars)); err != nil {
				return s, err
			}
			layout = objects.Vars[0].Type // without its name
		}
		if *part.layout, err = layoutOf(layout, ""); err != nil {
			return s, err
		}
	}
	return s, nil
}

// memberLayouts describes what the members of a fused program keep, as layouts does for a single lambda.
func memberLayouts(spec *ebpf.CollectionSpec) (map[string]api.Layouts, error) {
	members := map[string]api.Layouts{}
	for section, m := range spec.Maps {
		member, ok := strings.CutPrefix(section, KeptSectionOf(""))
		if !ok {
			continue
		}
		objects, err := objectsIn(m)
		if err != nil {
			return nil, err
		}
		kept, err := layoutOf(objects, member+"__")
		if err != nil {
			return nil, err
		}
		members[member] = api.Layouts{Kept: kept}
	}
	return members, nil
}

// objectsIn is what the type information says of a section.
func objectsIn(m *ebpf.MapSpec) (*btf.Datasec, error) {
	objects, ok := m.Value.(*btf.Datasec)
	if !ok || m.Type != ebpf.Array || m.MaxEntries != 1 {
		return nil, fmt.Errorf("%w: a map %q without type information for its objects", ErrForbidden, m.Name)
	}
	return objects, nil
}

// single requires one object: the order of several in memory is the compiler's choice, and a migration must not depend on it.
func single(objects int) error {
	if objects != 1 {
		return fmt.Errorf("%w: LAMBDA_MIGRATED on %d objects: make them one struct", ErrForbidden, objects)
	}
	return nil
}

// layoutOf names a type by its structure. Names of objects lose the prefix.
func layoutOf(t btf.Type, prefix string) (string, error) {
	s := speller{prefix: prefix}
	s.spell(t, 0)
	if s.err != nil {
		return "", s.err
	}
	return nameLayout(s.text.String()), nil
}

func nameLayout(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// A speller writes a type out, with the names and offsets of its members, so that a changed type does not pass for the old one. Names of
// structs are left out: a lambda that takes over an old struct calls it otherwise.
type speller struct {
	prefix string
	text   strings.Builder
	err    error
}

// Limits of a type. A hostile object file could spell out more than fits in memory.
const (
	maxTypeDepth = 16
	maxTypeText  = 1 << 16
)

func (s *speller) spell(t btf.Type, depth int) {
	if s.err == nil && (depth > maxTypeDepth || s.text.Len() > maxTypeText) {
		s.err = fmt.Errorf("%w: the type of an object that is kept or migrated is too intricate: make it simpler", ErrForbidden)
	}
	if s.err != nil {
		return
	}
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Datasec:
		for _, v := range t.Vars {
			fmt.Fprintf(&s.text, "%s@%d:", strings.TrimPrefix(v.Type.TypeName(), s.prefix), v.Offset)
			s.spell(v.Type, depth)
		}
	case *btf.Var:
		s.spell(t.Type, depth)
	case *btf.Array:
		fmt.Fprintf(&s.text, "[%d]", t.Nelems)
		s.spell(t.Type, depth+1)
	case *btf.Struct:
		fmt.Fprintf(&s.text, "struct %d", t.Size)
		s.members(t.Members, depth)
	case *btf.Union:
		fmt.Fprintf(&s.text, "union %d", t.Size)
		s.members(t.Members, depth)
	case *btf.Enum:
		fmt.Fprintf(&s.text, "enum %s %d;", t.Name, t.Size)
	case *btf.Int:
		fmt.Fprintf(&s.text, "%s %d;", t.Encoding, t.Size)
	case *btf.Pointer:
		s.text.WriteString("*;")
	default:
		fmt.Fprintf(&s.text, "%T %s;", t, t.TypeName())
	}
}

func (s *speller) members(members []btf.Member, depth int) {
	s.text.WriteByte('{')
	for _, m := range members {
		fmt.Fprintf(&s.text, "%s@%d:%d ", m.Name, m.Offset, m.BitfieldSize)
		s.spell(m.Type, depth+1)
	}
	s.text.WriteByte('}')
}

// nativeLayouts describes the state of a lambda that is not built for the NIC, by names, offsets and sizes: the types of its objects are
// not known.
func nativeLayouts(object []byte) (s api.Layouts, err error) {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return s, fmt.Errorf("inspect native object: %w", err)
	}
	symbols, err := file.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return s, fmt.Errorf("inspect native object: %w", err)
	}
	for _, part := range []struct {
		section string
		layout  *string
	}{{"lambda_keep", &s.Kept}, {"lambda_migrate", &s.Migrated}, {"lambda_migrate_old", &s.From}} {
		index := slices.IndexFunc(file.Sections, func(s *elf.Section) bool { return s.Name == part.section })
		if index < 0 {
			continue
		}
		objects := nativeObjects(symbols, index, file.Sections[index].Addr)
		if part.layout != &s.Kept {
			if err := single(len(objects)); err != nil {
				return s, err
			}
			objects = nil // its name is free
		}
		*part.layout = nameLayout(fmt.Sprintf("native %d %q", file.Sections[index].Size, objects))
	}
	return s, nil
}

// nativeObjects lists the objects in a section, with their offsets and sizes.
func nativeObjects(symbols []elf.Symbol, section int, addr uint64) (objects []string) {
	for _, s := range symbols {
		if int(s.Section) == section && elf.ST_TYPE(s.Info) == elf.STT_OBJECT {
			objects = append(objects, fmt.Sprintf("%s@%d %d", s.Name, s.Value-addr, s.Size))
		}
	}
	slices.Sort(objects)
	return objects
}
