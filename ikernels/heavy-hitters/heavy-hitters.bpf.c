// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * heavy-hitters finds the keys that most messages have, and passes all messages on. A key is a part of the message, or its sender's address. Messages that
 * have no whole key are not counted.
 *
 * The application asks by a note, and gets the answer by its first ring before the note's delivery returns. The answer has the HEAVY_TOP keys whose estimates
 * are the greatest, in no order. With n messages that were counted, a key's estimate
 *
 * - is never below how many of them had the key,
 * - and is above that by at most n * e / HEAVY_COLUMNS (0.033 % of n) with a probability of 1 - 1 / e^HEAVY_ROWS (98 %).
 *
 * This is a count-min sketch (Cormode, Muthukrishnan: An Improved Data Stream Summary: The Count-Min Sketch and its Applications, 2005). All CPUs count in one,
 * by atomic additions, so that none is lost.
 *
 * Each CPU lists the keys that had the greatest estimates when it last saw them. One that is among the HEAVY_TOP greatest now was so, too, when it was last
 * seen, as other estimates only grow: so it is in the list of that CPU, and the answer, which takes the greatest of all lists, has it. What is missing can only
 * be a key whose own estimate grew by messages of other keys since. It is not one of more than 1/62 of all messages, where estimates are within their bound.
 */
struct ik_registers {
	unsigned long long offset; /* bytes before the key */
	unsigned long long length; /* of the key, up to 64 bytes; 0: the key is the sender's address */
	unsigned long long seed; /* of the hash: a random number where senders might choose keys that share counters */
};

#include "../../bpf/hash.h"
#include "../notes.h"
#include "../rings.h"

enum heavy_limit {
	HEAVY_KEY = 64, /* bytes of a key */
	HEAVY_TOP = 64, /* keys of an answer; a power of two */
	HEAVY_ROWS = 4, /* counters of a key */
	HEAVY_BITS = 13,
	HEAVY_COLUMNS = 1 << HEAVY_BITS, /* counters of a row; those of all rows are numbered by one hash */
	HEAVY_LISTS = 32, /* CPUs share them where there are more */
	HEAVY_COUNTERS = HEAVY_ROWS * HEAVY_COLUMNS,
};

_Static_assert(HEAVY_ROWS *HEAVY_BITS <= 64, "a hash numbers the counters of all rows");

/* What a note asks for: its first four bytes, in the machine's byte order. */
enum heavy_ask {
	HEAVY_REPORT = 1,
	HEAVY_REPORT_AND_FORGET = 2, /* begins anew, unless the ring is full. Messages of this moment may be missing */
};

struct heavy_sketch {
	__u64 counters[HEAVY_COUNTERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct heavy_sketch);
} heavy_sketches SEC(".maps");

struct heavy_key {
	__u64 hash;
	__u64 estimate; /* when the key was last seen; 0: there is no key */
	__u64 len;
	__u64 key[HEAVY_KEY / 8]; /* with zeros behind it */
};

struct heavy_top {
	struct heavy_key keys[HEAVY_TOP];
	__u64 least; /* of a search: an estimate, and behind it where it is. In memory, so that the verifier does not tell one place from another */
};

struct heavy_list {
	struct bpf_spin_lock lock;
	__u64 count; /* of messages */
	struct heavy_top top;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HEAVY_LISTS);
	__type(key, __u32);
	__type(value, struct heavy_list);
} heavy_lists SEC(".maps");

/* What answers: of the deliveries to an ikernel there is one at a time. */
struct heavy_answer {
	__u64 count;
	struct heavy_top list; /* that is read */
	struct heavy_top top; /* of all lists so far */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct heavy_answer);
} heavy_answers SEC(".maps");

/* What the application gets. */
struct heavy_reported {
	__u64 estimate; /* 0: there are not so many keys */
	__u32 len; /* of the key. An address has 4 or 16 */
	__u32 pad;
	__u64 key[HEAVY_KEY / 8]; /* the key's bytes, with zeros behind them */
};

struct heavy_report {
	__u64 count; /* of messages, of which the estimates are parts */
	struct heavy_reported keys[HEAVY_TOP];
};

static __always_inline __u64 heavy_hash(const struct heavy_key *k, __u64 seed)
{
	__u64 hash = ln_mix(seed ^ k->len);

	for (int i = 0; i < HEAVY_KEY / 8 && i * 8 < k->len; i++)
		hash = ln_mix(hash ^ k->key[i]);
	return hash;
}

/* Where a row has a key's counter. */
static __always_inline __u32 heavy_at(__u64 hash, __u32 row)
{
	return row * HEAVY_COLUMNS + (hash >> HEAVY_BITS * row) % HEAVY_COLUMNS;
}

static __always_inline __u64 heavy_estimate(__u64 hash)
{
	struct heavy_sketch *s;
	__u64 least = -1;
	__u32 zero = 0;

	s = bpf_map_lookup_elem(&heavy_sketches, &zero);
	if (!s)
		return 0;
	for (int i = 0; i < HEAVY_ROWS; i++) {
		if (s->counters[heavy_at(hash, i)] < least)
			least = s->counters[heavy_at(hash, i)];
	}
	return least;
}

static __always_inline int heavy_is_same(const struct heavy_key *a, const struct heavy_key *b)
{
	__u64 differs = a->hash ^ b->hash;

	if (differs)
		return 0;
	differs = a->len ^ b->len;
	for (int i = 0; i < HEAVY_KEY / 8; i++)
		differs |= a->key[i] ^ b->key[i];
	return !differs;
}

/*
 * Counts a key in the sketch. Returns its estimate with this message, which it reads when all rows have it. Of two CPUs that count the same key at once, each
 * may be first in one row, so that what their additions return is too little for both; the one that reads last sees the messages of both.
 */
static __always_inline __u64 heavy_count(__u64 hash)
{
	struct heavy_sketch *s;
	__u32 zero = 0;
	__u64 before;

	s = bpf_map_lookup_elem(&heavy_sketches, &zero);
	if (!s)
		return 0;
	for (int i = 0; i < HEAVY_ROWS; i++) {
		before = __sync_fetch_and_add(&s->counters[heavy_at(hash, i)], 1);
		/* Used, as only an addition that returns a value is ordered with the reads (Linux's Documentation/atomic_t.txt). */
		ln_opaque(before);
	}
	return heavy_estimate(hash);
}

/* Notes a key's estimate: in its place, or else in that of the least one. */
static __always_inline void heavy_enter(struct heavy_top *top, const struct heavy_key *k)
{
	volatile __u64 *least = &top->least;
	__u64 word;

	*least = -1;
	for (__u32 i = 0; i < HEAVY_TOP; i++) {
		if (heavy_is_same(&top->keys[i], k)) {
			if (top->keys[i].estimate < k->estimate)
				top->keys[i].estimate = k->estimate;
			return;
		}
		word = top->keys[i].estimate * HEAVY_TOP + i;
		if (word < *least)
			*least = word;
	}
	word = *least;
	if (word / HEAVY_TOP < k->estimate)
		top->keys[word % HEAVY_TOP] = *k;
}

/* The same for a list that nobody else has. */
LN_GLOBAL int heavy_merge(struct heavy_top *top, const struct heavy_key *k)
{
	if (!top || !k)
		return 0;
	heavy_enter(top, k);
	return 0;
}

/* Reads a message's key; -1 if it has none. */
static __always_inline int heavy_read(const struct ik_message *m, const struct ik_registers *as, struct heavy_key *k)
{
	__u32 n = as->length;

	if (!as->length) {
		k->len = m->flow->ipv6 ? 16 : 4;
		__builtin_memcpy(k->key, m->flow->peer_addr, 4);
		if (m->flow->ipv6)
			ln_copy_addr(k->key, m->flow->peer_addr);
		return 0;
	}
	if (as->length > HEAVY_KEY || as->offset > m->len || as->length > m->len - as->offset)
		return -1;
	k->len = n;
	return ln_length_fits(n, HEAVY_KEY) ? (int)bpf_xdp_load_bytes(m->ctx, m->at + as->offset, k->key, n) : -1;
}

/* Counts a key, which has its hash. */
LN_GLOBAL int heavy_see(struct heavy_key *k)
{
	__u32 number = bpf_get_smp_processor_id() % HEAVY_LISTS;
	struct heavy_list *list = bpf_map_lookup_elem(&heavy_lists, &number);

	if (!list || !k)
		return 0;
	k->estimate = heavy_count(k->hash);
	bpf_spin_lock(&list->lock);
	list->count++;
	heavy_enter(&list->top, k);
	bpf_spin_unlock(&list->lock);
	return 0;
}

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	struct ik_state *s = ik_begin();
	struct heavy_key k = {};
	struct ik_registers as;

	if (!s)
		return IK_PASS;
	as = s->registers;
	ik_end(s);
	if (heavy_read(m, &as, &k))
		return IK_PASS;
	k.hash = heavy_hash(&k, as.seed);
	heavy_see(&k);
	return IK_PASS;
}

/* Volatile, as Clang would call memset and memcpy, which BPF lacks. */
static __always_inline void heavy_clear(struct heavy_top *top)
{
	volatile __u64 *words = (__u64 *)top;

	for (int i = 0; i < sizeof(*top) / 8; i++)
		words[i] = 0;
}

static __always_inline void heavy_copy(const struct heavy_top *from, struct heavy_top *to)
{
	const volatile __u64 *source = (const __u64 *)from;

	for (int i = 0; i < sizeof(*to) / 8; i++)
		((__u64 *)to)[i] = source[i];
}

/* Reads a list; 0 if nothing was counted there. */
LN_GLOBAL int heavy_read_list(__u32 number)
{
	struct heavy_list *list = bpf_map_lookup_elem(&heavy_lists, &number);
	struct heavy_answer *a;
	__u32 zero = 0;
	__u64 count;

	a = bpf_map_lookup_elem(&heavy_answers, &zero);
	if (!list || !a)
		return 0;
	bpf_spin_lock(&list->lock);
	count = list->count;
	heavy_copy(&list->top, &a->list);
	bpf_spin_unlock(&list->lock);
	a->count += count;
	return count != 0;
}

/* Adds a key of the list that was read to the answer, with its estimate of now. */
static long heavy_add_key(__u32 at, void *unused)
{
	struct heavy_answer *a;
	struct heavy_key *k;
	__u32 zero = 0;

	a = bpf_map_lookup_elem(&heavy_answers, &zero);
	if (!a || at >= HEAVY_TOP)
		return 1;
	k = &a->list.keys[at];
	if (!k->len)
		return 0;
	k->estimate = heavy_estimate(k->hash);
	heavy_merge(&a->top, k);
	return 0;
}

static long heavy_add_list(__u32 number, void *unused)
{
	if (heavy_read_list(number))
		bpf_loop(HEAVY_TOP, heavy_add_key, NULL, 0);
	return 0;
}

LN_GLOBAL int heavy_forget_list(__u32 number)
{
	struct heavy_list *list = bpf_map_lookup_elem(&heavy_lists, &number);

	if (!list)
		return 0;
	bpf_spin_lock(&list->lock);
	list->count = 0;
	heavy_clear(&list->top);
	bpf_spin_unlock(&list->lock);
	return 0;
}

static long heavy_clear_list(__u32 number, void *unused)
{
	heavy_forget_list(number);
	return 0;
}

static long heavy_clear_column(__u32 column, void *unused)
{
	struct heavy_sketch *s;
	__u32 zero = 0;

	s = bpf_map_lookup_elem(&heavy_sketches, &zero);
	if (!s || column >= HEAVY_COLUMNS)
		return 1;
	for (int i = 0; i < HEAVY_ROWS; i++)
		s->counters[i * HEAVY_COLUMNS + column] = 0;
	return 0;
}

LN_GLOBAL int heavy_begin_answer(struct heavy_answer *a)
{
	if (!a)
		return 0;
	a->count = 0;
	heavy_clear(&a->top);
	return 0;
}

/* Posts the answer; -1 if the ring is full. */
LN_GLOBAL int heavy_post(const struct heavy_answer *a)
{
	static const struct ln_flow nobody;
	struct ik_message none = { .flow = &nobody };
	struct heavy_report *r;

	if (!a)
		return -1;
	r = ik_reserve(&none, 0, sizeof(*r));
	if (!r)
		return -1;
	r->count = a->count;
	for (int i = 0; i < HEAVY_TOP; i++) {
		r->keys[i].estimate = a->top.keys[i].estimate;
		r->keys[i].len = a->top.keys[i].len;
		r->keys[i].pad = 0;
		__builtin_memcpy(r->keys[i].key, a->top.keys[i].key, HEAVY_KEY);
	}
	ik_commit(r);
	return 0;
}

static __always_inline void ik_note(const struct bpf_dynptr *note)
{
	struct heavy_answer *a;
	__u32 zero = 0, ask;

	a = bpf_map_lookup_elem(&heavy_answers, &zero);
	if (!a || ik_read_note(note, 0, &ask, sizeof(ask)) || ask < HEAVY_REPORT || ask > HEAVY_REPORT_AND_FORGET)
		return;
	heavy_begin_answer(a);
	bpf_loop(HEAVY_LISTS, heavy_add_list, NULL, 0);
	if (heavy_post(a) || ask != HEAVY_REPORT_AND_FORGET)
		return;
	bpf_loop(HEAVY_COLUMNS, heavy_clear_column, NULL, 0);
	bpf_loop(HEAVY_LISTS, heavy_clear_list, NULL, 0);
}

const enum heavy_limit *heavy_limit_ __attribute__((unused));
const struct heavy_report *heavy_report_ __attribute__((unused));
