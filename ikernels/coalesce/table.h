/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of coalesce. One is open: it takes new keys. When it is full, or its time has come, it is closed, and the other one is opened. The closed one still
 * takes values of the keys that it has, until the ring has room for it. So a key is in both only while the closed one is being written to the ring, and
 * then its newer value is in the open one.
 *
 * All CPUs share the tables, and the lock of the registers is theirs. If each CPU had its own, a batch would have a key as often as there are CPUs, and nobody
 * could say which value is the newest. With one lock that is the order in which CPUs get it, and registers say at any moment what tables have.
 */
#ifndef COALESCE_TABLE_H
#define COALESCE_TABLE_H

#include "../../bpf/hash.h"

enum coalesce_limit {
	COALESCE_KEY = 16, /* bytes of a key */
	COALESCE_VALUE = 64, /* bytes of a value */
	COALESCE_MESSAGE = COALESCE_KEY + COALESCE_VALUE,
	COALESCE_WORDS = COALESCE_MESSAGE / 8,
	COALESCE_ENTRIES = 1024, /* keys of a table; a power of two */
	COALESCE_PASSES = 10, /* of a merge sort of them */
	COALESCE_BUCKETS = 2 * COALESCE_ENTRIES,
	COALESCE_CHAIN = 16, /* entries of a bucket */
	COALESCE_AGAIN = 1000, /* us until a batch that the ring had no room for is tried again, at least */
	COALESCE_SOON = 100, /* us until one is tried again that another CPU is about to post */
};

_Static_assert(COALESCE_ENTRIES == 1 << COALESCE_PASSES, "each pass of a merge sort doubles what is sorted");

#define COALESCE_LONGEST 3600000000ULL /* us of an interval */

enum coalesce_operation {
	COALESCE_LAST, /* the newest value */
	COALESCE_SUM, /* of numbers of eight bytes in network order, modulo 2^64 */
	COALESCE_MAX, /* of such numbers, without a sign */
	COALESCE_MIN,
	COALESCE_OPERATIONS,
};

/* What became of an update. */
enum coalesce_result {
	COALESCE_TAKEN = 1, /* a table has it */
	COALESCE_NEW = 2, /* no table has its key */
	COALESCE_NO_ROOM = 4, /* nor room for it */
	COALESCE_FULL = 8, /* the closed table is to be posted */
	COALESCE_UNTIMED = 16, /* the timer is to be started */
};

/* What stands before the entries of a batch. Numbers are in the machine's byte order. */
struct coalesce_batch {
	__u64 updates; /* messages of which they are */
	__u32 count; /* of entries */
	__u16 key; /* bytes of each key */
	__u16 value; /* bytes that each entry has for its value: a multiple of eight */
};

/* A key and its value, each with zeros behind it. A batch has only the first bytes of value. */
struct coalesce_entry {
	__u32 len; /* of the value */
	__u32 pad;
	__u64 key[COALESCE_KEY / 8];
	__u64 value[COALESCE_VALUE / 8];
};

struct coalesce_update {
	__u64 words[COALESCE_WORDS]; /* the message */
	__u32 len; /* of the message */
	__u32 crowded; /* not 0: the open table has no room in the bucket */
	struct coalesce_entry entry; /* of the message */
};

struct coalesce_table {
	__u64 form; /* of the registers with which it began */
	__u64 seed; /* of the hash: random, as senders might choose keys of one bucket */
	__u64 updates;
	__u32 count;
	__u32 room; /* how many entries it takes */
	__u16 heads[COALESCE_BUCKETS]; /* of chains: the number of an entry, or 0. They are numbered from 1 */
	__u16 nexts[COALESCE_ENTRIES];
	__u16 order[2][COALESCE_ENTRIES]; /* where a merge sort has its runs */
	struct coalesce_entry entries[COALESCE_ENTRIES];
};

/* What the table that is not open is. */
enum coalesce_closed {
	COALESCE_EMPTY,
	COALESCE_WAITING, /* to be posted */
	COALESCE_LEAVING, /* who posts it has it alone */
};

/* Of a merge sort from one order to the other, two runs at a time. */
struct coalesce_sort {
	__u32 from; /* which order has them */
	__u32 width; /* of a run */
	__u32 left;
	__u32 middle; /* where the left run ends, and the right one begins */
	__u32 right;
	__u32 end;
	__u32 to;
};

struct coalesce_memory {
	struct bpf_timer timer;
	__u64 timed; /* the interval for which the timer runs, or 1 if there is none; 0: it does not */
	__u32 open; /* the number of the open table */
	__u32 closed; /* enum coalesce_closed */
	__u32 flushing; /* not 0: somebody sorts and posts the closed table */
	__u32 sorted; /* not 0: it is sorted already */
	struct coalesce_sort sort;
	struct coalesce_table tables[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct coalesce_memory);
} coalesce_memories SEC(".maps");

static __always_inline struct coalesce_memory *coalesce_find_memory(void)
{
	__u32 zero = 0;
	struct coalesce_memory *mem = bpf_map_lookup_elem(&coalesce_memories, &zero);

	if (!mem)
		ik_fault(IK_FAULT_MEMORY_NOT_FOUND);
	return mem;
}

static __always_inline struct coalesce_table *coalesce_open_table(struct coalesce_memory *mem)
{
	return &mem->tables[mem->open & 1];
}

static __always_inline struct coalesce_table *coalesce_closed_table(struct coalesce_memory *mem)
{
	return &mem->tables[~mem->open & 1];
}

/* A form is what registers say of updates, in one word. */
#define COALESCE_FORM(key, value, operation) (1ULL << 24 | (operation) << 16 | (value) << 8 | (key))

static __always_inline __u32 coalesce_key(__u64 form)
{
	return form & 0xff;
}

static __always_inline __u32 coalesce_value(__u64 form)
{
	return form >> 8 & 0xff;
}

static __always_inline __u32 coalesce_operation(__u64 form)
{
	return form >> 16 & 0xff;
}

/* Bytes of a value in a batch. */
static __always_inline __u32 coalesce_slot(__u64 form)
{
	return (coalesce_value(form) + 7) & ~7U;
}

/* Bytes of an entry in a batch. */
static __always_inline __u32 coalesce_stride(__u64 form)
{
	return __builtin_offsetof(struct coalesce_entry, value) + coalesce_slot(form);
}

/* 0 if there can be no updates by these registers. */
static __always_inline __u64 coalesce_form(const struct ik_registers *r)
{
	__u64 value = r->operation == COALESCE_LAST ? r->value : 8;

	if (!r->key || r->key > COALESCE_KEY || value > COALESCE_VALUE || r->operation >= COALESCE_OPERATIONS ||
	    r->entries > COALESCE_ENTRIES)
		return 0;
	return COALESCE_FORM(r->key, value, r->operation);
}

/* How many entries a batch may have. Before them a ring has eight bytes of its own, and two heads; it is never quite full. */
static __always_inline __u32 coalesce_entries(const struct ik_registers *r, __u64 form, __u64 ring)
{
	const __u64 before = 16 + sizeof(struct ik_head) + sizeof(struct coalesce_batch);
	__u64 most = r->entries ?: COALESCE_ENTRIES, fit = (ring - before) / coalesce_stride(form);

	if (ring < before)
		return 0;
	return fit < most ? fit : most;
}

/* The word that has the first n of eight bytes. */
static __always_inline __u64 coalesce_first(__u64 word, __u32 n)
{
	return n >= 8 ? word : word & ((1ULL << 8 * n) - 1);
}

/* Takes a message apart. Not 0 if it is no update. */
static __always_inline int coalesce_split(struct coalesce_update *u, __u64 form)
{
	__u32 key = coalesce_key(form), len = u->len - key, words = key / 8, bits = key % 8 * 8;

	if (u->len < key || len > coalesce_value(form))
		return -1;
	if (coalesce_operation(form) != COALESCE_LAST && len != 8)
		return -1;
	u->entry.len = len;
	u->entry.key[0] = coalesce_first(u->words[0], key);
	u->entry.key[1] = key > 8 ? coalesce_first(u->words[1], key - 8) : 0;
	for (__u32 i = 0; i < COALESCE_VALUE / 8; i++) {
		__u32 at = i + words, more = at + 1;
		__u64 word;

		ln_opaque(at);
		ln_opaque(more);
		word = at < COALESCE_WORDS ? u->words[at] : 0;
		if (bits)
			word = word >> bits | (more < COALESCE_WORDS ? u->words[more] << (64 - bits) : 0);
		u->entry.value[i] = word;
	}
	return 0;
}

static __always_inline __u32 coalesce_bucket(const struct coalesce_table *t, const struct coalesce_entry *e)
{
	return ln_mix(ln_mix(t->seed ^ e->key[0]) ^ e->key[1]) % COALESCE_BUCKETS;
}

/*
 * The number of the entry that has a key; 0: none has, and the bucket may be crowded. Chains are short, so that the lock is, too: with a random seed, no bucket
 * gets as many as COALESCE_CHAIN in practice. If one does, the table counts as full.
 */
static __always_inline __u32 coalesce_find(const struct coalesce_table *t, const struct coalesce_entry *e,
					   __u32 *crowded)
{
	__u32 number = t->heads[coalesce_bucket(t, e)], at;

	for (__u32 i = 0; i < COALESCE_CHAIN && number; i++) {
		at = (number - 1) % COALESCE_ENTRIES;
		ln_opaque(at);
		at %= COALESCE_ENTRIES;
		if (t->entries[at].key[0] == e->key[0] && t->entries[at].key[1] == e->key[1])
			return number;
		number = t->nexts[at];
	}
	*crowded = number != 0;
	return 0;
}

static __always_inline void coalesce_copy(struct coalesce_entry *to, const struct coalesce_entry *from)
{
	to->len = from->len;
	for (int i = 0; i < COALESCE_VALUE / 8; i++)
		to->value[i] = from->value[i];
}

/* Has an entry get one more value. */
static __always_inline void coalesce_merge(struct coalesce_entry *to, const struct coalesce_entry *from,
					   __u32 operation)
{
	__u64 a = bpf_be64_to_cpu(to->value[0]), b = bpf_be64_to_cpu(from->value[0]);

	switch (operation) {
	case COALESCE_SUM:
		to->value[0] = bpf_cpu_to_be64(a + b);
		return;
	case COALESCE_MAX:
		if (b > a)
			to->value[0] = from->value[0];
		return;
	case COALESCE_MIN:
		if (b < a)
			to->value[0] = from->value[0];
		return;
	default:
		coalesce_copy(to, from);
	}
}

/* Adds an update to a table that has its key. Returns whether one has. */
static __always_inline int coalesce_update_known(struct coalesce_table *t, struct coalesce_update *u, __u64 form)
{
	__u32 number, at;

	u->crowded = 0;
	if (!t->count || t->form != form)
		return 0;
	number = coalesce_find(t, &u->entry, &u->crowded);
	if (!number)
		return 0;
	at = number - 1;
	ln_opaque(at);
	coalesce_merge(&t->entries[at % COALESCE_ENTRIES], &u->entry, coalesce_operation(form));
	t->updates++;
	return 1;
}

/* Adds an entry to a table that has room for it. */
static __always_inline void coalesce_insert(struct coalesce_table *t, const struct coalesce_entry *e)
{
	__u32 at = t->count, bucket = coalesce_bucket(t, e);
	struct coalesce_entry *to;

	ln_opaque(at);
	at %= COALESCE_ENTRIES;
	to = &t->entries[at];
	to->key[0] = e->key[0];
	to->key[1] = e->key[1];
	coalesce_copy(to, e);
	t->nexts[at] = t->heads[bucket];
	t->heads[bucket] = at + 1;
	t->order[0][at] = at;
	t->count++;
	t->updates++;
}

static __always_inline void coalesce_close(struct coalesce_memory *mem)
{
	mem->closed = COALESCE_WAITING;
	mem->open ^= 1;
}

/* Adds a key that no table has. The registers are locked. */
static __always_inline int coalesce_take_new(struct coalesce_memory *mem, struct ik_registers *r,
					     const struct coalesce_update *u, __u64 form, __u64 ring, __u64 seed)
{
	struct coalesce_table *t = coalesce_open_table(mem);
	int result = COALESCE_TAKEN;

	if (t->count && (t->form != form || t->count >= t->room || u->crowded)) {
		if (mem->closed != COALESCE_EMPTY)
			return COALESCE_NO_ROOM;
		coalesce_close(mem);
		t = coalesce_open_table(mem);
		result |= COALESCE_FULL;
	}
	if (!t->count) {
		t->form = form;
		t->seed = seed;
		t->updates = 0;
		t->room = coalesce_entries(r, form, ring);
	}
	coalesce_insert(t, &u->entry);
	r->updates++;
	return result;
}

/* Adds an update. The registers are locked. */
static __always_inline int coalesce_take(struct coalesce_memory *mem, struct ik_registers *r, struct coalesce_update *u,
					 __u64 ring, __u64 seed)
{
	__u64 form = coalesce_form(r);
	int result = COALESCE_TAKEN;

	if (!form)
		return 0;
	if (coalesce_split(u, form)) {
		r->malformed++;
		return 0;
	}
	if ((mem->closed == COALESCE_WAITING && coalesce_update_known(coalesce_closed_table(mem), u, form)) ||
	    coalesce_update_known(coalesce_open_table(mem), u, form)) {
		r->updates++;
		r->coalesced++;
	} else {
		if (!ring)
			return COALESCE_NEW;
		result = coalesce_take_new(mem, r, u, form, ring, seed);
	}
	if (result & COALESCE_TAKEN && r->interval && (!mem->timed || r->interval < mem->timed)) {
		mem->timed = r->interval;
		result |= COALESCE_UNTIMED;
	}
	return result;
}

#endif
