// Package messages lets the NIC assemble messages of several packets (bpf/messages).
package messages

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

//go:generate go tool bpf2go -target bpfel -no-strip -no-global-types -type ln_message_state -type ln_message -type ln_bucket -type ln_grants messages ../../../../bpf/messages/messages.bpf.c

var half = program.Half{
	Name: "messages", Object: _MessagesBytes, Spec: loadMessages,
	Entries: map[string]program.Module{"ln_messages_module": program.RootLnModuleLN_MODULE_MESSAGES},
}

// Module is one NIC's.
type Module struct {
	module.Base
	Buckets module.Ranges  // of ln_messages; successive revisions share them if they ask for as many
	sharing map[uint32]int // how many revisions share buckets, by the first bucket
	maps    messagesMaps
}

var _ module.Module = (*Module)(nil)

// Message is the record of one (bpf/layout.h).
type Message = messagesLnMessage

// Bucket is a set of records under one lock (bpf/layout.h).
type Bucket = messagesLnBucket

// Grants are the messages that are being received (bpf/layout.h).
type Grants = messagesLnGrants

// Half is bpf/messages.
func (*Module) Half() *program.Half { return &half }

// Open implements module.Module.
func (m *Module) Open(_ module.NIC, half *ebpf.Collection) error {
	m.sharing = map[uint32]int{}
	if err := half.Assign(&m.maps); err != nil {
		return err
	}
	m.Buckets = module.NewRanges(0, m.maps.LnMessages.MaxEntries())
	return nil
}

// Close implements module.Module.
func (m *Module) Close() error { return m.maps.Close() }

// Adopt implements module.Module.
func (m *Module) Adopt(r *module.Revision) {
	if r.Record.BucketCount > 0 {
		m.Buckets.Mark(r.Record.BucketBase, r.Record.BucketCount, true)
		m.sharing[r.Record.BucketBase]++
	}
}

// Take gives a revision message records. If it asks for as many as the revision before, it gets the same ones, so that a message in
// assembly is found again after a swap.
func (m *Module) Take(c *module.Change) error {
	r, message := &c.Next.Record, c.Spec.Message
	r.MessageMax, r.MessageTimeoutMs = uint32(message.Max), uint32(time.Duration(message.Timeout).Milliseconds())
	r.MessageWays = uint32(min(message.InFlight, int(program.RootLnLimitLN_MESSAGE_WAYS)))
	buckets := bucketsFor(message)
	if buckets == 0 {
		return nil
	}
	if old := c.Previous; old != nil && old.Record.BucketCount == buckets {
		r.BucketBase, r.BucketCount = old.Record.BucketBase, buckets
		m.sharing[r.BucketBase]++
		return nil
	}
	base, err := m.Buckets.Take(buckets)
	if err != nil {
		return fmt.Errorf("message records of the NIC: %w: lower message.in_flight or remove a lambda", err)
	}
	r.BucketBase, r.BucketCount = base, buckets
	m.sharing[base]++
	// The records of an earlier lambda name slots that are gone.
	for i := range buckets {
		if err := m.maps.LnMessages.Put(base+i, &Bucket{}); err != nil {
			return fmt.Errorf("clear message records: %w", err)
		}
	}
	return nil
}

// bucketsFor rounds a lambda's messages in flight up to a number of buckets that is a power of two, as the hash needs.
func bucketsFor(m api.MessageSpec) uint32 {
	if m.Mode == api.ModePacket {
		return 0
	}
	const ways = uint32(program.RootLnLimitLN_MESSAGE_WAYS)
	return (uint32(1)<<bits.Len32(max(uint32(m.InFlight), ways)-1) + ways - 1) / ways
}

// Needed is true while messages exist that the revision began.
func (m *Module) Needed(r *module.Revision) (bool, error) {
	now, err := module.Now()
	if err != nil {
		return false, err
	}
	for i := range r.Record.BucketCount {
		var b Bucket
		if err := m.maps.LnMessages.LookupWithFlags(r.Record.BucketBase+i, &b, ebpf.LookupLock); err != nil {
			return false, fmt.Errorf("read message records: %w", err)
		}
		for _, message := range b.Way {
			if message.State != uint8(messagesLnMessageStateLN_MESSAGE_FREE) && message.Released == 0 && message.Slot == r.Slot && now < message.ExpiresNs {
				return true, nil
			}
		}
	}
	return false, nil
}

// Free implements module.Module.
func (m *Module) Free(r *module.Revision) {
	base, count := r.Record.BucketBase, r.Record.BucketCount
	if count == 0 {
		return
	}
	if m.sharing[base]--; m.sharing[base] == 0 {
		delete(m.sharing, base)
		m.Buckets.Mark(base, count, false)
	}
}
