package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
)

// bbolt trusts page numbers and lengths of a damaged database file: it reads beyond the mapped file or loops
// for ever, even where it checks the file, in goroutines whose crash ends the process. So the pages are checked here first. The file
// format is bbolt's internal/common; numbers are the machine's, little endian.

const (
	pageHeader = 16 // id 8, flags 2, count 2, overflow 4
	pageEntry  = 16 // branch: pos 4, key size 4, page 8; leaf: flags 4, pos 4, key size 4, value size 4

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	leafIsBucket = 0x01
	bucketHeader = 16 // root page 8, sequence 8

	noFreelist = math.MaxUint64 // bbolt finds the free pages by a walk, as here
)

// meta is a database's root, of which it has two: the last one and the one before.
type meta struct {
	Magic, Version, PageSize, Flags uint32
	Root, Sequence                  uint64 // the bucket that holds the buckets
	Freelist                        uint64
	Pages                           uint64 // in use or free
	Tx                              uint64
	Checksum                        uint64
}

const (
	metaSize    = 64
	metaMagic   = 0xED0CDAED
	metaVersion = 2
)

// readMeta returns the meta at a place of the file, if there is one.
func readMeta(file []byte, at int) (m meta, ok bool) {
	if len(file) < at+pageHeader+metaSize {
		return m, false
	}
	raw := file[at+pageHeader:][:metaSize]
	if _, err := binary.Decode(raw, binary.LittleEndian, &m); err != nil {
		return m, false
	}
	h := fnv.New64a()
	_, _ = h.Write(raw[:metaSize-8])
	return m, m.Magic == metaMagic && m.Version == metaVersion && m.Checksum == h.Sum64() && m.PageSize >= 1024 && m.PageSize <= 1<<24
}

// newestMeta returns the meta that bbolt begins with. The first page says where the second is; if it does not, newestMeta searches.
func newestMeta(file []byte) (meta, error) {
	first, ok := readMeta(file, 0)
	if ok {
		if second, ok := readMeta(file, int(first.PageSize)); ok && second.Tx > first.Tx {
			return second, nil
		}
		return first, nil
	}
	for size := 1 << 10; size <= 1<<24; size <<= 1 {
		if second, ok := readMeta(file, size); ok && int(second.PageSize) == size {
			return second, nil
		}
	}
	return meta{}, errors.New("neither of its first two pages says what it is")
}

// pages is a walk through all pages of a database.
type pages struct {
	file []byte
	meta meta
	seen map[uint64]bool
}

// checkPages walks through a database file as bbolt would, and trusts nothing.
func checkPages(file []byte) error {
	m, err := newestMeta(file)
	if err != nil {
		return err
	}
	if want := m.Pages * uint64(m.PageSize); m.Pages > math.MaxInt64/uint64(m.PageSize) || want > uint64(len(file)) {
		return fmt.Errorf("it is cut off: it has %d bytes of %d pages of %d", len(file), m.Pages, m.PageSize)
	}
	w := &pages{file: file, meta: m, seen: make(map[uint64]bool)}
	if err := w.freelist(); err != nil {
		return err
	}
	return w.tree(m.Root, nil, nil)
}

// page returns a page with its overflow pages, none of which may have been met before.
func (w *pages) page(id uint64) ([]byte, error) {
	if id < 2 || id >= w.meta.Pages {
		return nil, fmt.Errorf("page %d does not exist", id)
	}
	size := uint64(w.meta.PageSize)
	page := w.file[id*size:]
	overflow := uint64(binary.LittleEndian.Uint32(page[12:]))
	if got := binary.LittleEndian.Uint64(page); got != id {
		return nil, fmt.Errorf("page %d takes itself for page %d", id, got)
	}
	if overflow >= w.meta.Pages-id {
		return nil, fmt.Errorf("page %d goes on beyond the end", id)
	}
	for i := id; i <= id+overflow; i++ {
		if w.seen[i] {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		w.seen[i] = true
	}
	return page[:(overflow+1)*size], nil
}

// freelist checks the list of free pages, where there is one.
func (w *pages) freelist() error {
	if w.meta.Freelist == noFreelist {
		return nil
	}
	page, err := w.page(w.meta.Freelist)
	if err != nil {
		return err
	}
	count, list := uint64(binary.LittleEndian.Uint16(page[10:])), page[pageHeader:]
	if count == math.MaxUint16 { // the first entry is the count
		count, list = binary.LittleEndian.Uint64(list), list[8:]
	}
	if binary.LittleEndian.Uint16(page[8:]) != freelistPage || count > uint64(len(list)/8) {
		return fmt.Errorf("page %d is not a list of free pages", w.meta.Freelist)
	}
	for i := range count {
		id := binary.LittleEndian.Uint64(list[i*8:])
		if id < 2 || id >= w.meta.Pages || w.seen[id] {
			return fmt.Errorf("page %d is free and is not", id)
		}
		w.seen[id] = true
	}
	return nil
}

// tree checks the pages below a page. Their keys have to be at least least and below most, where those are not nil.
func (w *pages) tree(id uint64, least, most []byte) error {
	page, err := w.page(id)
	if err != nil {
		return err
	}
	return w.entries(page, least, most, true)
}

// entries checks a page's entries.
func (w *pages) entries(page, least, most []byte, mayBranch bool) error {
	id, flags, count := binary.LittleEndian.Uint64(page), binary.LittleEndian.Uint16(page[8:]), int(binary.LittleEndian.Uint16(page[10:]))
	branch := flags == branchPage && mayBranch
	if !branch && flags != leafPage || branch && count == 0 || pageHeader+count*pageEntry > len(page) {
		return fmt.Errorf("page %d is neither a branch nor a leaf with %d entries", id, count)
	}
	for i := range count {
		e, err := readEntry(page, i, branch)
		if err != nil {
			return fmt.Errorf("page %d, entry %d: %w", id, i, err)
		}
		if len(e.key) == 0 || i > 0 && bytes.Compare(least, e.key) >= 0 || least != nil && bytes.Compare(least, e.key) > 0 ||
			most != nil && bytes.Compare(e.key, most) >= 0 {
			return fmt.Errorf("page %d, entry %d: its key is out of order", id, i)
		}
		least = e.key
		switch {
		case branch:
			next := most
			if i+1 < count {
				following, err := readEntry(page, i+1, branch)
				if err != nil {
					return fmt.Errorf("page %d, entry %d: %w", id, i+1, err)
				}
				next = following.key
			}
			err = w.tree(e.page, e.key, next)
		case e.flags == leafIsBucket:
			err = w.bucket(e.value)
		case e.flags != 0:
			err = fmt.Errorf("page %d, entry %d: it is neither a value nor a bucket", id, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket checks a bucket, which is a tree of its own, or so small that its page is part of the value.
func (w *pages) bucket(value []byte) error {
	if len(value) < bucketHeader {
		return errors.New("a bucket has no root")
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return w.tree(root, nil, nil)
	}
	if len(value) < bucketHeader+pageHeader {
		return errors.New("a small bucket has no page")
	}
	return w.entries(value[bucketHeader:], nil, nil, false)
}

type entry struct {
	flags      uint32
	key, value []byte
	page       uint64
}

func readEntry(page []byte, i int, branch bool) (e entry, err error) {
	at := pageHeader + i*pageEntry
	raw := page[at:]
	var pos, keySize, valueSize uint64
	if branch {
		pos, keySize = uint64(binary.LittleEndian.Uint32(raw)), uint64(binary.LittleEndian.Uint32(raw[4:]))
		e.page = binary.LittleEndian.Uint64(raw[8:])
	} else {
		e.flags, pos = binary.LittleEndian.Uint32(raw), uint64(binary.LittleEndian.Uint32(raw[4:]))
		keySize, valueSize = uint64(binary.LittleEndian.Uint32(raw[8:])), uint64(binary.LittleEndian.Uint32(raw[12:]))
	}
	if pos+keySize+valueSize > uint64(len(raw)) {
		return e, errors.New("it does not fit into the page")
	}
	e.key, e.value = raw[pos:pos+keySize], raw[pos+keySize:][:valueSize]
	return e, nil
}
