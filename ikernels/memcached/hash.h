/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hash of a key, byte by byte: FNV-1a (Fowler, Noll, Vo), begun with a secret and mixed at its end as MurmurHash3 does. Keys are
 * compared wherever equal hashes would matter, so that one who finds collisions only makes the cache forget sooner.
 */
#ifndef MC_HASH_H
#define MC_HASH_H

#include "../../bpf/hash.h"

extern const volatile __u64 mc_secret; /* set by the loader */

static __always_inline __u64 mc_hash_begin(void)
{
	return mc_secret;
}

static __always_inline __u64 mc_hash_byte(__u64 hash, __u8 byte)
{
	return ln_fnv_byte(hash, byte);
}

static __always_inline __u64 mc_hash_end(__u64 hash)
{
	return ln_mix(hash);
}

/* Which of n things a key has, by the lower half of its hash. */
static __always_inline __u32 mc_one_of(__u64 n, __u64 hash)
{
	return (__u64)(__u32)hash * n >> 32;
}

#endif
