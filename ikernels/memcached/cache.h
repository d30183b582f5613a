/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cache: an index of buckets, each one line of the processor's cache, and segments of memory that hold the items.
 *
 * The worker (store.go) alone writes both, in memory that it shares with the NIC program. It writes an item whole before an entry of the index
 * names it, and writes over it only when the entry is gone and all programs that could have seen the entry have ended. So the NIC program needs no
 * lock, and sees no item change.
 */
#ifndef MC_CACHE_H
#define MC_CACHE_H

#include "guard.h"
#include "hash.h"
#include "../../bpf/verifier.h"

enum mc_cache_limit {
	MC_WAYS = 8, /* entries of a bucket */
	MC_CELL = 32, /* bytes; items begin at multiples of this */
	MC_SEGMENT = 1 << 18, /* bytes */
	MC_ITEM_HEADER = 34, /* bytes */
	MC_ITEM_KEY = sizeof("VALUE ") - 1, /* where in an item's bytes the key begins */
	MC_ITEM_MAX = 2048, /* bytes; no item begins so near the end of a segment that this much would not fit */
	MC_HEAD_MAX = 512, /* bytes of an item's head */
	MC_CAS_MAX = 24, /* bytes of a version in decimal, with the space before it */
	MC_EXPIRES_SHIFT = 26, /* items keep when they expire in units of 2^26 ns, some 67 ms */
};

/* A tag in the upper half, the upper half of the key's hash; in the lower half the number of the item's first cell. 0 is no entry. */
struct mc_bucket {
	__u64 entries[MC_WAYS];
};

/* A key's value as the server sends it, and until when the server would send the same. */
struct mc_item {
	__u64 hash; /* of the key */
	__u64 guard, all; /* words of the key's guard and of that of all keys when the server was asked */
	__u32 expires; /* CLOCK_MONOTONIC, in ns >> MC_EXPIRES_SHIFT, from which on the value may not be answered; 0: never */
	__u16 head_len; /* "VALUE key flags length" */
	__u16 tail_len; /* line end, value, line end */
	__u8 key_len;
	__u8 cas_len; /* a space and the version */
	__u8 bytes[MC_ITEM_MAX - MC_ITEM_HEADER]; /* head, tail and version: a reply to get ends before the last */
};

_Static_assert(__builtin_offsetof(struct mc_item, bytes) == MC_ITEM_HEADER, "an item's bytes follow its header");

struct mc_segment {
	__u8 bytes[MC_SEGMENT];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct mc_bucket);
} mc_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct mc_segment);
} mc_segments SEC(".maps");

/* Those of the cache's server, in the observer's memory (servers.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, MC_GUARDS_FLAGS);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, __u64);
} mc_guards SEC(".maps");

extern const volatile __u64 mc_buckets; /* set by the loader */
extern const volatile __u64 mc_guard_mask; /* guards of single keys less 1; set by the loader */

/* The guard's word, or MC_GUARD_CLOSED. */
static __always_inline __u64 mc_guard_word(__u32 index)
{
	volatile __u64 *guard = bpf_map_lookup_elem(&mc_guards, &index);
	__u64 word = guard ? *guard : MC_GUARD_CLOSED;

	return word & (MC_GUARD_PENDING - 1) ? MC_GUARD_CLOSED : word;
}

/* The item at a cell. */
static __always_inline const struct mc_item *mc_item_at(__u32 cell)
{
	__u32 segment = cell / (MC_SEGMENT / MC_CELL), at = cell % (MC_SEGMENT / MC_CELL) * MC_CELL;
	const __u8 *bytes = bpf_map_lookup_elem(&mc_segments, &segment);

	if (!bytes || at > MC_SEGMENT - MC_ITEM_MAX)
		return 0;
	ln_opaque(at); /* nothing is added before the check */
	return (const void *)(bytes + at);
}

/* Whether the server would answer with this item now. */
static __always_inline int mc_is_current(const struct mc_item *item)
{
	if (item->guard != mc_guard_word(mc_guard_of(item->hash, mc_guard_mask)) ||
	    item->all != mc_guard_word(MC_GUARD_ALL))
		return 0;
	return !item->expires || bpf_ktime_get_ns() >> MC_EXPIRES_SHIFT < item->expires;
}

#endif
