// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * coalesce keeps the newest value of each key, or the sum, the greatest or the least of its values, instead of the messages, and hands them over in batches: by
 * a ring, sorted, each key once. So a NIC holds what a log-structured merge tree calls its first level (O'Neil et al.: The Log-Structured Merge-Tree, 1996).
 *
 * A message is a key of some bytes, and its value behind it. The socket gets those that cannot be, and those whose key finds no room as the ring is full.
 */
struct ik_registers {
	unsigned long long key; /* bytes of a key, 1 to 16; 0: all messages pass */
	unsigned long long value; /* most bytes of a value, up to 64. Numbers have 8, whatever it says */
	unsigned long long operation; /* enum coalesce_operation */
	unsigned long long
		entries; /* most keys of a batch, up to 1,024; 0: so many. Never more than the ring has room for */
	unsigned long long
		interval; /* us that a key waits at most, up to an hour; 0: until a batch is full, or asked for */
	unsigned long long updates; /* messages that are in a batch, or will be */
	unsigned long long coalesced; /* of these: whose key the batch had already */
	unsigned long long batches; /* that are posted */
	unsigned long long posted; /* keys in them */
	unsigned long long passed; /* messages whose key found no room */
	unsigned long long malformed; /* messages that are too short or too long */
};

#include "../notes.h"
#include "../rings.h"
#include "table.h"
#include "flush.h"

/* What a note asks for: its first four bytes, in the machine's byte order. */
enum coalesce_ask {
	COALESCE_FLUSH = 1, /* posts all that is there */
};

/* Those of all CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct coalesce_update);
} coalesce_updates SEC(".maps");

/* Reads a message, with zeros behind it. Not 0 if it cannot be read. What is too long is not read: it has no place anyway. */
static __always_inline int coalesce_read(const struct ik_message *m, struct coalesce_update *u)
{
	__u32 n = m->len;

	u->len = n;
	for (int i = 0; i < COALESCE_WORDS; i++)
		u->words[i] = 0;
	if (!n || n > COALESCE_MESSAGE)
		return 0;
	return ln_length_fits(n, COALESCE_MESSAGE) && !bpf_xdp_load_bytes(m->ctx, m->at, u->words, n) ? 0 : -1;
}

/* Adds an update to a table. Returns bits of enum coalesce_result. Without a ring, of so many bytes, no key is new. */
LN_GLOBAL int coalesce_apply(struct coalesce_update *u, __u64 ring, __u64 seed)
{
	struct coalesce_memory *mem = coalesce_find_memory();
	struct ik_state *s;
	int result;

	if (!mem || !u)
		return 0;
	s = ik_begin();
	if (!s)
		return 0;
	result = coalesce_take(mem, &s->registers, u, ring, seed);
	ik_end(s);
	return result;
}

/* A key that no table has. What takes long is done here, so that known keys do not pay for it. */
static __always_inline int coalesce_enter(struct coalesce_update *u)
{
	void *memory = ik_find_ring(0);
	__u64 ring, seed;
	int result;

	if (!memory)
		return 0;
	ring = bpf_ringbuf_query(memory, BPF_RB_RING_SIZE);
	seed = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	result = coalesce_apply(u, ring, seed);
	/* The batch that waits may have found room by now. */
	if (result & COALESCE_NO_ROOM && coalesce_flush(0) == COALESCE_POSTED)
		result = coalesce_apply(u, ring, seed);
	return result;
}

static __always_inline void coalesce_count_passed(void)
{
	struct ik_state *s = ik_begin();

	if (!s)
		return;
	s->registers.passed++;
	ik_end(s);
}

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	struct coalesce_update *u;
	__u32 zero = 0;
	int result;

	if (!ik_rings_count())
		return IK_PASS;
	u = bpf_map_lookup_elem(&coalesce_updates, &zero);
	if (!u)
		return ik_fault(IK_FAULT_MEMORY_NOT_FOUND);
	if (coalesce_read(m, u))
		return IK_PASS;
	result = coalesce_apply(u, 0, 0);
	if (result & COALESCE_NEW)
		result = coalesce_enter(u);
	if (result & COALESCE_FULL)
		coalesce_flush(0);
	if (result & COALESCE_UNTIMED)
		coalesce_arm();
	if (result & COALESCE_NO_ROOM)
		coalesce_count_passed();
	return result & COALESCE_TAKEN ? IK_DROP : IK_PASS;
}

static __always_inline void ik_note(const struct bpf_dynptr *note)
{
	__u32 ask;

	if (!ik_read_note(note, 0, &ask, sizeof(ask)) && ask == COALESCE_FLUSH)
		coalesce_flush_all();
}

const enum coalesce_limit *coalesce_limit_ __attribute__((unused));
const enum coalesce_operation *coalesce_operation_ __attribute__((unused));
const struct coalesce_batch *coalesce_batch_ __attribute__((unused));
const struct coalesce_entry *coalesce_entry_ __attribute__((unused));
