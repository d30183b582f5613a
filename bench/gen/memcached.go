package gen

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"runtime"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/mapped"
)

// A Step of a trace is a request to memcached. It is a GET for the key of this number, or what Set makes of it.
type Step uint32

// Keys is how many keys there can be.
const Keys = int(bpfLnGenLimitLN_GEN_SET)

// Set is the step that stores the key's value again.
func (s Step) Set() Step { return s | Step(bpfLnGenLimitLN_GEN_SET) }

// The kinds of memcached's replies.
const (
	Served = int(bpfLnGenReplyLN_GEN_SERVED) // a value, from the server
	Cached = int(bpfLnGenReplyLN_GEN_CACHED) // a value, from the NIC
	Stored = int(bpfLnGenReplyLN_GEN_STORED) // to a SET
	Kinds  = int(bpfLnGenReplyLN_GEN_REPLIES)
)

// Item is a key of 16 bytes and its value, as long, which both follow from a number (memcached.h).
func Item(number uint32) (key, value string) {
	word := make([]byte, 0, 8)
	for range cap(word) {
		word = append(word, 'a'+byte(number&15))
		number >>= 4
	}
	return "ikernel:" + string(word), "=" + string(word) + "-number"
}

// memcachedPackets are a GET and a SET by UDP whose request IDs, and the parts that a number names, are 0.
func memcachedPackets() [][]byte {
	const frame, word = "\x00\x00\x00\x00\x00\x01\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00"
	return [][]byte{
		[]byte(frame + "get ikernel:" + word + "\r\n"),
		[]byte(frame + "set ikernel:" + word + " 0 0 16\r\n=" + word + "-number\r\n"),
	}
}

// makeRoom gives the maps the size that a trace needs.
func makeRoom(spec *ebpf.CollectionSpec, steps int) error {
	if steps == 0 {
		return nil
	}
	if steps < 2 || bits.OnesCount(uint(steps)) != 1 {
		return fmt.Errorf("a trace has %d steps: give it a power of two from 2 on", steps)
	}
	spec.Maps["trace"].MaxEntries = uint32(steps / 2)
	spec.Maps["asked"].MaxEntries = uint32(runtime.NumCPU()) * uint32(bpfLnGenLimitLN_GEN_ASKED)
	return spec.Variables["trace_mask"].Set(uint32(steps - 1))
}

// setTenants tells the program by which interfaces the servers of memcached are reached.
func (g *Generator) setTenants(spec *ebpf.CollectionSpec) error {
	var interfaces [bpfLnGenLimitLN_GEN_TENANTS]uint32
	if len(g.pairs) > len(interfaces) {
		return fmt.Errorf("a load for %d servers of memcached: give at most %d", len(g.pairs), len(interfaces))
	}
	for i, p := range g.pairs {
		interfaces[i] = uint32(p.Host.Index)
	}
	return spec.Variables["interfaces"].Set(interfaces)
}

// follow has the program follow a trace. Each CPU begins at another place.
func (g *Generator) follow(trace []Step) error {
	memory, err := mapped.Array[Step](g.bpf.Trace)
	if err != nil {
		return err
	}
	copy(memory, trace)
	for cpu := range g.steps {
		g.steps[cpu] = uint32(cpu % runtime.NumCPU() * len(trace) / runtime.NumCPU())
	}
	return mapped.Unmap(memory)
}

// Latencies are counts of how long replies took.
type Latencies [bpfLnGenLimitLN_GEN_BUCKETS]uint64

// All yields latencies in ns, at a precision of 1 %, and how many there were of each.
func (l *Latencies) All() iter.Seq2[int64, uint64] {
	return func(yield func(ns int64, n uint64) bool) {
		for bucket, n := range l {
			if n > 0 && !yield(middleOf(bucket), n) {
				return
			}
		}
	}
}

// middleOf is the latency in the middle of a bucket.
func middleOf(bucket int) int64 {
	const parts = int(bpfLnGenLimitLN_GEN_PARTS)
	if bucket < 2*parts {
		return int64(bucket)
	}
	shift := bucket/parts - 1
	return int64(bucket%parts+parts)<<shift + 1<<(shift-1)
}

// stamp begins to measure latencies, or no longer does.
func (g *Generator) stamp(on bool) error {
	var value uint32
	if on {
		value = 1
	}
	var none [Kinds]Latencies
	return errors.Join(g.bpf.Stamp.Set(value), g.bpf.Latencies.Set(&none))
}

func (g *Generator) latencies() (*[Kinds]Latencies, error) {
	var all [Kinds]Latencies
	if err := g.bpf.Latencies.Get(&all); err != nil {
		return nil, fmt.Errorf("read the latencies: %w", err)
	}
	return &all, nil
}

// Tenants says how many right replies of each server of memcached arrived since New.
func (g *Generator) Tenants() ([]uint64, error) {
	c, err := g.counts()
	return c.Tenants[:len(g.pairs)], err
}
