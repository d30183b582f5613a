/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SHA-256 (FIPS 180-4): one block. */
#ifndef CJ_SHA256_H
#define CJ_SHA256_H

#include "scratch.h"

static const __u32 cj_round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/*
 * BPF cannot rotate. Of a word that stands in both halves of a register, each shift to the right is a rotation of the lower half. So three rotations
 * take nine instructions; with two shifts for each, they would take up to seventeen.
 */
static __always_inline __u64 cj_twice(__u32 x)
{
	return (__u64)x << 32 | x;
}

/* One more rotation. The compiler would undo it: to shift thrice takes more registers than there are. */
static __always_inline __u64 cj_and(__u64 t, int by, __u64 x)
{
	t = t >> by ^ x;
	ln_opaque(t);
	return t;
}

static __always_inline __u32 cj_big_0(__u32 x)
{
	__u64 t = cj_twice(x);

	return cj_and(cj_and(t, 9, t), 11, t) >> 2; /* rotated by 2, 13 and 22 */
}

static __always_inline __u32 cj_big_1(__u32 x)
{
	__u64 t = cj_twice(x);

	return cj_and(cj_and(t, 14, t), 5, t) >> 6; /* by 6, 11 and 25 */
}

static __always_inline __u32 cj_small_0(__u32 x)
{
	__u64 t = cj_twice(x);

	return (__u32)(cj_and(t, 11, t) >> 7) ^ x >> 3; /* by 7 and 18 */
}

static __always_inline __u32 cj_small_1(__u32 x)
{
	__u64 t = cj_twice(x);

	return (__u32)(cj_and(t, 2, t) >> 17) ^ x >> 10; /* by 17 and 19 */
}

/* Adds the block at this offset of the token's buffer to the state. */
LN_GLOBAL int cj_add_block(struct cj_scratch *s, __u32 at)
{
	__u32 w[16], h[8];

	if (!s || at > CJ_BUFFER - CJ_BLOCK)
		return 0;
#pragma unroll
	for (int i = 0; i < 16; i++)
		w[i] = bpf_ntohl(*(const __u32 *)(s->token + at + i * 4));
#pragma unroll
	for (int i = 0; i < 8; i++)
		h[i] = s->hash[i];
#pragma unroll
	for (int i = 0; i < 64; i++) {
		/* In round i, h[-i & 7] is a of the standard, h[1 - i & 7] is b, and so on. */
		__u32 a = h[-i & 7], b = h[(1 - i) & 7], c = h[(2 - i) & 7];
		__u32 e = h[(4 - i) & 7], f = h[(5 - i) & 7], g = h[(6 - i) & 7], t, word = w[i & 15];

		if (i >= 16)
			word += cj_small_1(w[(i - 2) & 15]) + w[(i - 7) & 15] + cj_small_0(w[(i - 15) & 15]);
		ln_opaque(word); /* or the compiler would compute all words first, for which the stack has no room */
		w[i & 15] = word;
		t = h[(7 - i) & 7] + cj_round_constants[i] + word + (((f ^ g) & e) ^ g) + cj_big_1(e);
		h[(3 - i) & 7] += t;
		t += (((a ^ b) & (b ^ c)) ^ b) + cj_big_0(a);
		h[(7 - i) & 7] = t;
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
		s->hash[i] += h[i];
	return 1;
}

#endif
