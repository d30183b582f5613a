// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * steering hands messages to the application by rings, past the kernel's network stack. All messages with the same key go by the same ring, in the order in
 * which they come; or without a key, all that come to the same CPU. Messages that have no whole key go to the socket, as all do before the application opens
 * rings.
 */
struct ik_registers {
	unsigned long long offset; /* bytes before the key */
	unsigned long long length; /* of the key, up to 64 bytes; 0: none */
	unsigned long long overflow; /* where a message goes whose ring is full: to the socket, or if 0 nowhere */
};

#include "../rings.h"

#define STEERING_MAX_KEY 64

/* FNV-1a, mixed at its end as MurmurHash3 does. */
static __always_inline __u32 steering_hash(const __u8 *key, __u32 len)
{
	__u64 hash = 0xcbf29ce484222325ULL;

	for (__u32 i = 0; i < STEERING_MAX_KEY && i < len; i++)
		hash = (hash ^ key[i]) * 0x100000001b3ULL;
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdULL;
	return hash >> 32;
}

/* The ring of a message; -1 if it has no whole key. */
static __always_inline long steering_choose(const struct ik_message *m, __u64 offset, __u64 len)
{
	__u8 key[STEERING_MAX_KEY];
	__u32 n = len;

	if (!len)
		return ik_ring_by_core();
	if (len > sizeof(key) || offset > m->len || len > m->len - offset)
		return -1;
	if (!ln_length_fits(n, sizeof(key)) || bpf_xdp_load_bytes(m->ctx, m->at + offset, key, n))
		return -1;
	return ik_ring_by(steering_hash(key, n));
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
