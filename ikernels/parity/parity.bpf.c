// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * parity passes each message on, and posts a copy of it, so that one lost copy of several can be rebuilt. Messages form groups. The i-th message of a group
 * is posted to ring i, and behind the last one the parity to the ring after those: what all messages of the group XOR to, each with zeros behind it up to the
 * longest, and what their lengths XOR to. Whoever has all but one of them has that, too.
 *
 * The messages of a CPU form groups of their own. So no CPU waits for another, and the parity follows its messages at once; a group of several CPUs would need
 * a lock around all of its bytes. The price is that messages that wait for their parity are at each CPU. The application ends all groups by a note.
 */
struct ik_registers {
	unsigned long long
		shards; /* messages of a group, 2 to 16; otherwise there are no copies. A group keeps the number with which it began */
	unsigned long long messages; /* that are in groups */
	unsigned long long groups; /* that are complete */
	unsigned long long unfit; /* messages that are too long: they are passed on alone */
};

#include "../notes.h"
#include "../rings.h"

enum parity_limit {
	PARITY_MIN_SHARDS = 2,
	PARITY_MAX_SHARDS = 16,
	PARITY_MESSAGE = 1472, /* bytes: what fits a frame of 1500 by IPv4 */
	PARITY_WORDS = PARITY_MESSAGE / 8,
	PARITY_GROUPS = 256, /* CPUs share them where there are more */
};

/* What a note asks for: its first four bytes, in the machine's byte order. */
enum parity_ask {
	PARITY_FLUSH = 1, /* posts the parity of all groups that have begun, which are complete with that */
};

/* What stands before the bytes of a copy, and of a parity. */
struct parity_head {
	__u64 group; /* which no other one ever has */
	__u16 index; /* of the copy in its group */
	__u16 count; /* 0: this is a copy; or else it is the parity of so many */
	__u32 len; /* of the copy; of a parity, what the lengths XOR to */
};

/* A message on its way to a ring, or a parity. */
struct parity_shard {
	struct parity_head head;
	__u64 words[PARITY_WORDS];
	__u32 len; /* bytes of words to post */
	__u32 ring;
};

/* A group that has begun, if its count is not 0. */
struct parity_group {
	struct bpf_spin_lock lock; /* against the note */
	__u32 shards;
	__u32 count;
	__u32 lengths; /* XOR */
	__u32 longest;
	__u32 pad;
	__u64 number;
	__u64 words[PARITY_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PARITY_GROUPS);
	__type(key, __u32);
	__type(value, struct parity_group);
} parity_groups SEC(".maps");

struct parity_scratch {
	struct parity_shard message;
	struct parity_shard parity;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct parity_scratch);
} parity_scratches SEC(".maps");

/* Of notes, which come one at a time, but beside messages at their CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct parity_shard);
} parity_flushed SEC(".maps");

/* Moves what a group has to its parity, and begins the next. The group is locked. */
static __always_inline void parity_end(struct parity_group *g, struct parity_shard *to, __u32 slot)
{
	__u32 words = (g->longest + 7) / 8;

	to->head.group = g->number * PARITY_GROUPS + slot;
	to->head.index = g->count;
	to->head.count = g->count;
	to->head.len = g->lengths;
	to->len = g->longest;
	to->ring = g->shards;
	for (__u32 i = 0; i < PARITY_WORDS && i < words; i++) {
		to->words[i] = g->words[i];
		g->words[i] = 0;
	}
	g->number++;
	g->count = 0;
	g->lengths = 0;
	g->longest = 0;
}

/* Adds a message to its group, of which it gets the head. Returns whether the group is complete, and its parity there. */
LN_GLOBAL int parity_add(struct parity_shard *m, struct parity_shard *parity, __u32 shards)
{
	__u32 slot = bpf_get_smp_processor_id() % PARITY_GROUPS, words;
	struct parity_group *g = bpf_map_lookup_elem(&parity_groups, &slot);
	int complete;

	if (!g || !m || !parity)
		return 0;
	words = (m->len + 7) / 8;
	bpf_spin_lock(&g->lock);
	if (!g->count)
		g->shards = shards;
	m->head.group = g->number * PARITY_GROUPS + slot;
	m->head.index = g->count;
	m->ring = g->count;
	g->count++;
	g->lengths ^= m->len;
	if (m->len > g->longest)
		g->longest = m->len;
	for (__u32 i = 0; i < PARITY_WORDS && i < words; i++)
		g->words[i] ^= m->words[i];
	complete = g->count >= g->shards;
	if (complete)
		parity_end(g, parity, slot);
	bpf_spin_unlock(&g->lock);
	return complete;
}

/* Ends a group that has begun. Returns whether its parity is there. */
LN_GLOBAL int parity_flush(struct parity_shard *parity, __u32 slot)
{
	struct parity_group *g = bpf_map_lookup_elem(&parity_groups, &slot);
	int begun;

	if (!g || !parity)
		return 0;
	bpf_spin_lock(&g->lock);
	begun = g->count != 0;
	if (begun)
		parity_end(g, parity, slot);
	bpf_spin_unlock(&g->lock);
	return begun;
}

/* Posts to the shard's ring. One that is full has counted that. */
static __always_inline void parity_post(const struct ik_message *m, const struct parity_shard *s)
{
	__u32 len = sizeof(s->head) + s->len;

	ik_post(m, s->ring, s, len, sizeof(s->head) + PARITY_MESSAGE);
}

/* Reads a message, with zeros behind it up to a whole word. Not 0 if it is too long. */
static __always_inline int parity_read(const struct ik_message *m, struct parity_shard *s)
{
	__u32 last = m->len / 8, n = m->len;

	if (n > PARITY_MESSAGE)
		return -1;
	s->head.count = 0;
	s->head.len = n;
	s->len = n;
	if (last < PARITY_WORDS)
		s->words[last] = 0;
	return !n || (ln_length_fits(n, PARITY_MESSAGE) && !bpf_xdp_load_bytes(m->ctx, m->at, s->words, n)) ? 0 : -1;
}

static __always_inline void parity_count(int unfit, int complete)
{
	struct ik_state *s = ik_begin();

	if (!s)
		return;
	s->registers.messages += !unfit;
	s->registers.unfit += unfit;
	s->registers.groups += complete;
	ik_end(s);
}

/* How many messages a group has; 0 if there are to be none, or too few rings. */
static __always_inline __u32 parity_shards(void)
{
	struct ik_state *s = ik_begin();
	__u64 shards;

	if (!s)
		return 0;
	shards = s->registers.shards;
	ik_end(s);
	if (shards < PARITY_MIN_SHARDS || shards > PARITY_MAX_SHARDS || shards >= ik_rings_count())
		return 0;
	return shards;
}

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	__u32 shards = parity_shards(), zero = 0;
	struct parity_scratch *s;
	int complete;

	if (!shards)
		return IK_PASS;
	s = bpf_map_lookup_elem(&parity_scratches, &zero);
	if (!s)
		return ik_fault(IK_FAULT_MEMORY_NOT_FOUND);
	if (parity_read(m, &s->message)) {
		parity_count(1, 0);
		return IK_PASS;
	}
	complete = parity_add(&s->message, &s->parity, shards);
	parity_post(m, &s->message);
	if (complete)
		parity_post(m, &s->parity);
	parity_count(0, complete != 0);
	return IK_PASS;
}

static long parity_flush_group(__u32 slot, void *unused)
{
	static const struct ln_flow nobody;
	struct ik_message none = { .flow = &nobody };
	struct parity_shard *s;
	struct ik_state *state;
	__u32 zero = 0;

	s = bpf_map_lookup_elem(&parity_flushed, &zero);
	if (!s || !parity_flush(s, slot))
		return 0;
	parity_post(&none, s);
	state = ik_begin();
	if (!state)
		return 1;
	state->registers.groups++;
	ik_end(state);
	return 0;
}

static __always_inline void ik_note(const struct bpf_dynptr *note)
{
	__u32 ask;

	if (!ik_read_note(note, 0, &ask, sizeof(ask)) && ask == PARITY_FLUSH)
		bpf_loop(PARITY_GROUPS, parity_flush_group, NULL, 0);
}

const enum parity_limit *parity_limit_ __attribute__((unused));
const struct parity_head *parity_head_ __attribute__((unused));
