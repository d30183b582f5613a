// Package native checks shared libraries of lambdas. While the dynamic linker loads a shared library, it can run code of that library and
// of the libraries that it names. This happens outside of any call, so nothing bounds its time. A library with such code is not loaded.
package native

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// ErrForbidden says that loading a shared library would run its code.
var ErrForbidden = errors.New("forbidden in a native object")

// initializers are the dynamic tags that make the dynamic linker call code, or hide from us what it reads, each with what makes compilers
// write it (gABI, "Initialization and Termination Functions"). The error names only the first: start files bring all of them along.
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
	{dtRelr, "packed relocations: link without -z pack-dyn-relocs"},
	{elf.DT_TEXTREL, "relocations of its code: build it with -fPIC"},
}

const (
	dynSize  = 16
	relaSize = 24
	wordSize = 8 // bytes that a relocation changes; a descriptor is twice as long

	dtRelr = elf.DynTag(36)
)

// pages are the largest page sizes of a machine's kernels. If two segments share a page, the later one's file decides its content.
var pages = map[elf.Machine]uint64{elf.EM_X86_64: 4 << 10, elf.EM_AARCH64: 64 << 10}

// irelative are the relocations that call a resolver, copying those that change more than one word, descriptor those that change two
// words.
var (
	irelative = map[elf.Machine]uint32{
		elf.EM_X86_64:  uint32(elf.R_X86_64_IRELATIVE),
		elf.EM_AARCH64: uint32(elf.R_AARCH64_IRELATIVE),
	}
	copying = map[elf.Machine]uint32{
		elf.EM_X86_64:  uint32(elf.R_X86_64_COPY),
		elf.EM_AARCH64: uint32(elf.R_AARCH64_COPY),
	}
	descriptor = map[elf.Machine]uint32{
		elf.EM_X86_64:  uint32(elf.R_X86_64_TLSDESC),
		elf.EM_AARCH64: uint32(elf.R_AARCH64_TLSDESC),
	}
)

// Check returns an error, which says what to remove, if loading a shared library would run its code. It follows the program headers and
// the dynamic tags, as the dynamic linker does: sections may be missing, or lie.
func Check(object []byte) error {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("native object: %w: build it with the compiler of this version", err)
	}
	if _, ok := irelative[file.Machine]; !ok || file.Class != elf.ELFCLASS64 || file.Type != elf.ET_DYN {
		return fmt.Errorf("%w: %v for %v: build a shared object for x86-64 or arm64", ErrForbidden, file.Type, file.Machine)
	}
	o := image{file: file, tags: make(map[elf.DynTag]uint64)}
	for _, check := range []func() error{o.checkSegments, o.readTags, o.checkTags, o.checkLibraries, o.checkRelocations, o.checkSymbols} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// An image is a shared library as it is in memory once it is loaded.
type image struct {
	file      *elf.File
	dynamic   *elf.Prog
	tags      map[elf.DynTag]uint64
	relocated uint64 // one more than the highest symbol index in a relocation
}

// checkSegments refuses segments that share a page, so that each address stands for one place in the file.
func (o *image) checkSegments() error {
	var end uint64
	page := pages[o.file.Machine]
	for _, p := range o.file.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if p.Vaddr/page*page < end || p.Vaddr > 1<<40 || p.Memsz > 1<<40 || p.Filesz > p.Memsz {
			return fmt.Errorf("%w: a segment at %#x that overlaps another: link it by the script of this version", ErrForbidden, p.Vaddr)
		}
		end = (p.Vaddr + p.Memsz + page - 1) / page * page
	}
	return nil
}

// table reads memory that no relocation can change.
func (o *image) table(addr, size uint64) ([]byte, error) { return o.at(addr, size, elf.PF_W) }

// at reads memory of the image, from a segment without the given flags.
func (o *image) at(addr, size uint64, without elf.ProgFlag) ([]byte, error) {
	for _, p := range o.file.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&without != 0 || addr < p.Vaddr || addr-p.Vaddr > p.Filesz || size > p.Filesz-(addr-p.Vaddr) || size > 1<<28 {
			continue
		}
		data := make([]byte, size)
		if _, err := p.ReadAt(data, int64(addr-p.Vaddr)); err == nil {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%w: %d bytes at %#x are not in the file, or not constant: build it again", ErrForbidden, size, addr)
}

func (o *image) readTags() error {
	found := 0
	for _, p := range o.file.Progs {
		if p.Type != elf.PT_DYNAMIC {
			continue
		}
		found++
		o.dynamic = p
		data, err := o.at(p.Vaddr, p.Filesz, 0)
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
	if elf.DynFlag(o.tags[elf.DT_FLAGS])&elf.DF_TEXTREL != 0 {
		return fmt.Errorf("%w: relocations of its code: build it with -fPIC", ErrForbidden)
	}
	return nil
}

// checkLibraries allows only the C library, which lambda-host has loaded already.
func (o *image) checkLibraries() error {
	name, ok := o.tags[elf.DT_NEEDED]
	if !ok {
		return nil
	}
	strs, err := o.table(o.tags[elf.DT_STRTAB], o.tags[elf.DT_STRSZ])
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
		data, err := o.table(addr, o.tags[table.size])
		if err != nil {
			return err
		}
		for ; len(data) >= relaSize; data = data[relaSize:] {
			place, kind := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint32(data[8:])
			if kind == irelative[o.file.Machine] {
				return errResolver
			}
			room := uint64(wordSize)
			if kind == descriptor[o.file.Machine] {
				room = 2 * wordSize
			}
			if kind == copying[o.file.Machine] || place < o.dynamic.Vaddr+o.dynamic.Memsz && place+room > o.dynamic.Vaddr {
				return fmt.Errorf("%w: a relocation that changes what the dynamic linker reads: build it again", ErrForbidden)
			}
			o.relocated = max(o.relocated, uint64(binary.LittleEndian.Uint32(data[12:]))+1)
		}
	}
	return nil
}

var errResolver = fmt.Errorf("%w: a function with a resolver: remove __attribute__((ifunc)), target_clones and target_version",
	ErrForbidden)

// checkSymbols refuses indirect functions, whose lookup calls a resolver. No header tells the number of symbols: the dynamic linker uses
// those in the hash table and those that relocations name.
func (o *image) checkSymbols() error {
	hashed, err := o.hashedSymbols()
	if err != nil {
		return err
	}
	symbols, err := o.table(o.tags[elf.DT_SYMTAB], max(hashed, o.relocated)*elf.Sym64Size)
	if err != nil {
		return err
	}
	for ; len(symbols) >= elf.Sym64Size; symbols = symbols[elf.Sym64Size:] {
		section, value := binary.LittleEndian.Uint16(symbols[6:]), binary.LittleEndian.Uint64(symbols[8:])
		defined := elf.SectionIndex(section) != elf.SHN_UNDEF || value != 0
		if defined && elf.ST_TYPE(symbols[4]) == elf.STT_GNU_IFUNC {
			return errResolver
		}
	}
	return nil
}

// hashedSymbols counts the symbols up to the last one in the GNU hash table. The table has four numbers, a Bloom filter, the first symbol
// of each bucket, and for each symbol a word whose lowest bit ends its bucket's chain.
func (o *image) hashedSymbols() (uint64, error) {
	at, ok := o.tags[elf.DT_GNU_HASH]
	if !ok {
		return 0, fmt.Errorf("%w: symbols without a GNU hash table: link with --hash-style=gnu", ErrForbidden)
	}
	head, err := o.table(at, 16)
	if err != nil {
		return 0, err
	}
	count, unhashed, filter := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	at += 16 + 8*uint64(filter)
	buckets, err := o.table(at, 4*uint64(count))
	if err != nil {
		return 0, err
	}
	var last uint32
	for ; len(buckets) >= 4; buckets = buckets[4:] {
		first := binary.LittleEndian.Uint32(buckets)
		if first != 0 && first < unhashed {
			return 0, fmt.Errorf("%w: symbol %d in its hash table: build it again", ErrForbidden, first)
		}
		last = max(last, first)
	}
	if last == 0 {
		return uint64(unhashed), nil
	}
	for at += 4 * uint64(count); ; last++ {
		word, err := o.table(at+4*uint64(last-unhashed), 4)
		if err != nil {
			return 0, err
		}
		if word[0]&1 != 0 {
			return uint64(last) + 1, nil
		}
	}
}
