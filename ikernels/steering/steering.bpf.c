// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * steering hands messages to the application by rings, past the kernel's network stack. All messages with the same key go by the same ring, in the order in
 * which they come; or without a key, all that come to the same CPU. Messages that have no whole key go to the socket, as all do before the application opens
 * rings.
 *
 * A key has one of 256 buckets, by its hash. The application may note a ring for the bucket of a key, to even out what its rings get: a ring's number, of 32
 * bits in the machine's byte order, and the key. What went by another ring before is not in order with what goes by this one.
 */
struct ik_registers {
	unsigned long long offset; /* bytes before the key */
	unsigned long long length; /* of the key, up to 64 bytes; 0: none */
	unsigned long long overflow; /* where a message goes whose ring is full: to the socket, or if 0 nowhere */
};

#include "../../bpf/hash.h"
#include "../notes.h"
#include "../rings.h"

#define STEERING_MAX_KEY 64
#define STEERING_BUCKETS 256

/* The ring for which the application has a note, for each bucket. */
struct steering_bucket {
	__u32 is_noted;
	__u32 ring;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STEERING_BUCKETS);
	__type(key, __u32);
	__type(value, struct steering_bucket);
} steering_buckets SEC(".maps");

/* The bucket of a key. */
static __always_inline __u32 steering_bucket_of(const __u8 *key, __u32 len)
{
	__u64 hash = LN_FNV_BEGIN;

	for (__u32 i = 0; i < STEERING_MAX_KEY && i < len; i++)
		hash = ln_fnv_byte(hash, key[i]);
	return ln_mix(hash) % STEERING_BUCKETS;
}

/* The ring of a message; -1 if it has no whole key. */
static __always_inline long steering_choose(const struct ik_message *m, __u64 offset, __u64 len)
{
	__u8 key[STEERING_MAX_KEY];
	struct steering_bucket *b;
	__u32 n = len, bucket;

	if (!len)
		return ik_ring_by_core();
	if (len > sizeof(key) || offset > m->len || len > m->len - offset)
		return -1;
	if (!ln_length_fits(n, sizeof(key)) || bpf_xdp_load_bytes(m->ctx, m->at + offset, key, n))
		return -1;
	bucket = steering_bucket_of(key, n);
	b = bpf_map_lookup_elem(&steering_buckets, &bucket);
	return ik_ring_by(b && b->is_noted ? b->ring : bucket);
}

static __always_inline void ik_note(const struct bpf_dynptr *note)
{
	struct ik_state *s = ik_begin();
	struct steering_bucket b = { .is_noted = 1 };
	__u8 key[STEERING_MAX_KEY];
	__u32 n, bucket;

	if (!s)
		return;
	n = s->registers.length;
	ik_end(s);
	if (!ln_length_fits(n, sizeof(key)) || ik_read_note(note, 0, &b.ring, sizeof(b.ring)) ||
	    ik_read_note(note, sizeof(b.ring), key, n))
		return;
	bucket = steering_bucket_of(key, n);
	bpf_map_update_elem(&steering_buckets, &bucket, &b, BPF_ANY);
}

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	struct ik_registers as;
	struct ik_state *s;
	long ring;

	if (!ik_rings_count())
		return IK_PASS;
	s = ik_begin();
	if (!s)
		return IK_PASS;
	as = s->registers;
	ik_end(s);
	ring = steering_choose(m, as.offset, as.length);
	if (ring < 0 || (ik_forward(m, ring) && as.overflow))
		return IK_PASS;
	return IK_DROP;
}
