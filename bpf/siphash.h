/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SipHash-2-4, a hash under a secret key (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012), of 64-bit words. */
#ifndef LN_SIPHASH_H
#define LN_SIPHASH_H

#include <linux/types.h>

struct ln_sip {
	__u64 v[4];
};

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

static __always_inline void ln_sip_begin(__u64 v[4], __u64 k0, __u64 k1)
{
	v[0] = k0 ^ 0x736f6d6570736575ULL;
	v[1] = k1 ^ 0x646f72616e646f6dULL;
	v[2] = k0 ^ 0x6c7967656e657261ULL;
	v[3] = k1 ^ 0x7465646279746573ULL;
}

static __always_inline void ln_sip_word(__u64 v[4], __u64 word)
{
	v[3] ^= word;
	ln_sip_round(v);
	ln_sip_round(v);
	v[0] ^= word;
}

/* The last word has the text's last bytes % 8 bytes, and the number of its bytes above them. */
static __always_inline __u64 ln_sip_end(__u64 v[4], __u32 bytes, __u64 rest)
{
	ln_sip_word(v, (__u64)bytes << 56 | rest);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		ln_sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
