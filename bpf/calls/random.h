/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that cannot be predicted from earlier ones: SipHash-2-4 (Aumasson, Bernstein, 2012) of a counter, under a key of
 * the NIC's own. A few values of bpf_get_prandom_u32(), in contrast, reveal the next (lib/random32.c).
 */
#ifndef LN_RANDOM_H
#define LN_RANDOM_H

#include "../maps.h"

static __always_inline __u64 ln_rotate(__u64 x, int by)
{
	return x << by | x >> (64 - by);
}

static __always_inline void ln_sip_round(__u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = ln_rotate(v[1], 13) ^ v[0];
	v[3] = ln_rotate(v[3], 16) ^ v[2];
	v[0] = ln_rotate(v[0], 32) + v[3];
	v[2] += v[1];
	v[1] = ln_rotate(v[1], 17) ^ v[2];
	v[3] = ln_rotate(v[3], 21) ^ v[0];
	v[2] = ln_rotate(v[2], 32);
}

/* A subprogram of which the verifier has nothing to prove: it takes and gives only numbers. */
static __noinline __u64 ln_random(__u64 counter)
{
	__u64 k0 = ln_call_key[0], k1 = ln_call_key[1], length = 8ULL << 56;
	__u64 v[4] = { k0 ^ 0x736f6d6570736575ULL, k1 ^ 0x646f72616e646f6dULL, k0 ^ 0x6c7967656e657261ULL,
		       k1 ^ 0x7465646279746573ULL ^ counter };

	ln_sip_round(v);
	ln_sip_round(v);
	v[0] ^= counter;
	v[3] ^= length;
	ln_sip_round(v);
	ln_sip_round(v);
	v[0] ^= length;
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		ln_sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
