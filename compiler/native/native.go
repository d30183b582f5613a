// Package native says what a native object may be. The dynamic linker runs code of an object while it loads it, and of the
// libraries that it names: outside of any call, so nothing there bounds its time. An object with such code is not loaded.
package native

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// ErrForbidden says that loading an object would run code of it.
var ErrForbidden = errors.New("forbidden in a native object")

// initializers are the dynamic tags that make the dynamic linker call code, with what makes compilers write them (gABI,
// "Initialization and Termination Functions"). The first that an object has is named: start files bring all of them along.
var initializers = []struct {
	tag  elf.DynTag
	what string
}{
	{elf.DT_INIT, "an _init function: remove it, and link with -nostdlib"},
	{elf.DT_FINI, "a _fini function: remove it, and link with -nostdlib"},
	{elf.DT_PREINIT_ARRAY, "a .preinit_array: remove what is put there"},
	{elf.DT_INIT_ARRAY, "an .init_array: remove __attribute__((constructor)), and constructors of C++ objects"},
	{elf.DT_FINI_ARRAY, "a .fini_array: remove __attribute__((destructor))"},
	{elf.DT_AUDIT, "an audit library: link without --audit"},
	{elf.DT_DEPAUDIT, "an audit library: link without --depaudit"},
	{elf.DT_AUXILIARY, "an auxiliary library: link without --auxiliary"},
	{elf.DT_FILTER, "a filter library: link without --filter"},
	{elf.DT_REL, "relocations without addends: link for x86-64 or arm64"},
}

const (
	dynSize  = 16
	relaSize = 24
)

// irelative are the relocations that call a resolver.
var irelative = map[elf.Machine]uint32{
	elf.EM_X86_64:  uint32(elf.R_X86_64_IRELATIVE),
	elf.EM_AARCH64: uint32(elf.R_AARCH64_IRELATIVE),
}

// Check returns an error, which says what to remove, where loading an object would run code of it. It follows the program
// headers and the dynamic tags, as the dynamic linker does: sections may be missing, or lie.
func Check(object []byte) error {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("native object: %w: build it with the compiler of this version", err)
	}
	if _, ok := irelative[file.Machine]; !ok || file.Class != elf.ELFCLASS64 || file.Type != elf.ET_DYN {
		return fmt.Errorf("%w: %v for %v: build a shared object for x86-64 or arm64", ErrForbidden, file.Type, file.Machine)
	}
	o := image{file: file, tags: make(map[elf.DynTag]uint64)}
	for _, check := range []func() error{o.readTags, o.checkTags, o.checkLibraries, o.checkRelocations, o.checkSymbols} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// An image is an object as it is in memory once it is loaded.
type image struct {
	file *elf.File
	tags map[elf.DynTag]uint64
}

// at reads memory of the image.
func (o *image) at(addr, size uint64) ([]byte, error) {
	for _, p := range o.file.Progs {
		if p.Type != elf.PT_LOAD || addr < p.Vaddr || addr-p.Vaddr > p.Filesz || size > p.Filesz-(addr-p.Vaddr) || size > 1<<28 {
			continue
		}
		data := make([]byte, size)
		if _, err := p.ReadAt(data, int64(addr-p.Vaddr)); err == nil {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%w: %d bytes at %#x are not in the file: build it again", ErrForbidden, size, addr)
}

func (o *image) readTags() error {
	found := 0
	for _, p := range o.file.Progs {
		if p.Type != elf.PT_DYNAMIC {
			continue
		}
		found++
		data, err := o.at(p.Vaddr, p.Filesz)
		if err != nil {
			return err
		}
		for ; len(data) >= dynSize; data = data[dynSize:] {
			tag := elf.DynTag(binary.LittleEndian.Uint64(data))
			if tag == elf.DT_NULL {
				break
			}
			if _, again := o.tags[tag]; again {
				return fmt.Errorf("%w: %v stands twice: link it with the C library only", ErrForbidden, tag)
			}
			o.tags[tag] = binary.LittleEndian.Uint64(data[8:])
		}
	}
	if found != 1 {
		return fmt.Errorf("%w: %d dynamic segments: build a shared object", ErrForbidden, found)
	}
	return nil
}

func (o *image) checkTags() error {
	for _, init := range initializers {
		if _, ok := o.tags[init.tag]; ok {
			return fmt.Errorf("%w: %s", ErrForbidden, init.what)
		}
	}
	return nil
}

// checkLibraries allows the C library alone, which lambda-host has loaded already.
func (o *image) checkLibraries() error {
	name, ok := o.tags[elf.DT_NEEDED]
	if !ok {
		return nil
	}
	strs, err := o.at(o.tags[elf.DT_STRTAB], o.tags[elf.DT_STRSZ])
	if err != nil {
		return err
	}
	library, _, _ := strings.Cut(string(strs[min(name, uint64(len(strs))):]), "\x00")
	if library != "libc.so.6" {
		return fmt.Errorf("%w: library %q: link it with the C library only", ErrForbidden, library)
	}
	return nil
}

func (o *image) checkRelocations() error {
	for _, table := range []struct{ addr, size elf.DynTag }{
		{elf.DT_RELA, elf.DT_RELASZ}, {elf.DT_JMPREL, elf.DT_PLTRELSZ},
	} {
		addr, ok := o.tags[table.addr]
		if !ok {
			continue
		}
		data, err := o.at(addr, o.tags[table.size])
		if err != nil {
			return err
		}
		for ; len(data) >= relaSize; data = data[relaSize:] {
			if binary.LittleEndian.Uint32(data[8:]) == irelative[o.file.Machine] {
				return errResolver
			}
		}
	}
	return nil
}

var errResolver = fmt.Errorf("%w: a function with a resolver: remove __attribute__((ifunc)), target_clones and target_version",
	ErrForbidden)

// checkSymbols refuses functions that looking them up would resolve. How many symbols there are, only the section tells.
func (o *image) checkSymbols() error {
	section := o.file.SectionByType(elf.SHT_DYNSYM)
	if section == nil || section.Addr != o.tags[elf.DT_SYMTAB] {
		return fmt.Errorf("%w: no section of its dynamic symbols: do not strip it", ErrForbidden)
	}
	symbols, err := o.file.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return fmt.Errorf("native object: %w: build it again", err)
	}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_GNU_IFUNC {
			return errResolver
		}
	}
	return nil
}
