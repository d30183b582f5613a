/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hashes of keys, for tables: not against one who chooses keys to collide, unless they begin with a secret. */
#ifndef LN_HASH_H
#define LN_HASH_H

#include <linux/types.h>

/* Where FNV-1a begins, and its step (draft-eastlake-fnv). */
#define LN_FNV_BEGIN 0xcbf29ce484222325ULL

static __always_inline __u64 ln_fnv_byte(__u64 hash, __u8 byte)
{
	return (hash ^ byte) * 0x100000001b3ULL;
}

/* The last step of MurmurHash3, after which each bit depends on all. */
static __always_inline __u64 ln_mix(__u64 hash)
{
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdULL;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53ULL;
	return hash ^ hash >> 33;
}

#endif
