package lambdanic

import (
	"encoding/binary"
	"fmt"
	"iter"
)

// A Batch is what the ikernel coalesce posts to its ring: keys in order, each once.
type Batch struct {
	Updates uint64 // the datagrams of which it is
	Len     int    // how many keys it has

	key, value int // bytes of each key, and what an entry has for its value
	entries    []byte
}

const (
	batchHead = 16 // struct coalesce_batch: updates, count, key, value
	entryHead = 8  // struct coalesce_entry, up to the key: the value's length
	entryKey  = 16
)

// ParseBatch reads a message of the ring of coalesce. The batch has its data where the message has it.
func ParseBatch(message []byte) (Batch, error) {
	if len(message) < batchHead {
		return Batch{}, fmt.Errorf("a message of %d bytes is no batch: is the ring one of coalesce?", len(message))
	}
	native := binary.NativeEndian
	b := Batch{
		Updates: native.Uint64(message), key: int(native.Uint16(message[12:])), value: int(native.Uint16(message[14:])),
		entries: message[batchHead:],
	}
	count := uint64(native.Uint32(message[8:]))
	if b.key > entryKey || count*uint64(b.stride()) != uint64(len(b.entries)) {
		return Batch{}, fmt.Errorf("a batch of %d keys of %d bytes has %d bytes: is the ring one of coalesce?", count, b.key, len(message))
	}
	b.Len = int(count)
	for i := range b.Len {
		if n := native.Uint32(b.entries[i*b.stride():]); uint64(n) > uint64(b.value) {
			return Batch{}, fmt.Errorf("a value of a batch has %d bytes of %d: is the ring one of coalesce?", n, b.value)
		}
	}
	return b, nil
}

// All yields the keys, in order, with their values. Both are where the batch's message is.
func (b Batch) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for i := range b.Len {
			entry := b.entries[i*b.stride():][:b.stride()]
			n := int(binary.NativeEndian.Uint32(entry))
			key, value := entry[entryHead:][:b.key:b.key], entry[entryHead+entryKey:][:n:n]
			if !yield(key, value) {
				return
			}
		}
	}
}

func (b Batch) stride() int { return entryHead + entryKey + b.value }
