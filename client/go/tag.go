package lambdanic

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/dchest/siphash"

	"github.com/lambdanic/lambdanic/api"
)

// A tagger tags packets, and checks the tags of answers (docs/protocol.md, "Tags"). Any number of goroutines may use it.
type tagger struct {
	k0, k1 uint64
	flags  api.Flag
	client uint32        // where the client's identities begin
	sent   atomic.Uint64 // packets: the low half is the sequence number; with each overflow, the client gets another identity
}

func newTagger(k *api.Key, payload bool) *tagger {
	le := binary.LittleEndian
	return &tagger{k0: le.Uint64(k.Secret[:]), k1: le.Uint64(k.Secret[8:]), flags: k.TagFlags(payload), client: uint32(firstID())}
}

// another is a tagger by the same key, whose packets come from another client. Without a tagger, it is none.
func (t *tagger) another() *tagger {
	if t == nil {
		return nil
	}
	return &tagger{k0: t.k0, k1: t.k1, flags: t.flags, client: uint32(firstID())}
}

// tagFlags are what the flags of a packet say of its tag.
const tagFlags = api.FlagTag | api.FlagTagPayload | api.FlagOddKey

// tagAll tags the packets of a batch. Without a tagger, they have no tags.
func (t *tagger) tagAll(b *batch) {
	if t == nil {
		return
	}
	for i := range b.count {
		p := b.buf[i*b.size : min((i+1)*b.size, len(b.buf))]
		n := t.sent.Add(1)
		client := t.client + uint32(n>>32)
		if client == 0 { // the anonymous one
			client = 1 << 31
		}
		p[4] |= byte(t.flags)
		be.PutUint32(p[44:], client)
		be.PutUint32(p[48:], uint32(n))
		be.PutUint64(p[api.TaggedHeaderLen:], t.tag(p[:api.TaggedHeaderLen], p[api.RPCHeaderLen:][:be.Uint16(p[6:])]))
	}
}

// tag is the tag over a header's bytes before it and, if the key is for both, the payload.
func (t *tagger) tag(header, payload []byte) uint64 {
	if t.flags&api.FlagTagPayload == 0 || len(payload) == 0 {
		return siphash.Hash(t.k0, t.k1, header)
	}
	var text [api.TaggedHeaderLen + api.RPCMaxPayload]byte
	n := copy(text[:], header)
	n += copy(text[n:], payload)
	return siphash.Hash(t.k0, t.k1, text[:n])
}

// accepts reports whether an answer is tagged as its request is. Without a tagger, any answer is accepted.
func (t *tagger) accepts(h *api.Header, payload []byte) bool {
	if t == nil {
		return true
	}
	var header [api.RPCHeaderLen]byte
	return h.Flags&tagFlags == t.flags && h.Tag == t.tag(h.Append(header[:0])[:api.TaggedHeaderLen], payload)
}
