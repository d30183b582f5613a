/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ChaCha20-Poly1305 (RFC 8439): authenticated encryption of bytes in the lambda's own memory. Ordinary C, on both targets.
 */
#ifndef LAMBDA_AEAD_H
#define LAMBDA_AEAD_H

#include "lambda.h"
#include "string.h"

#define AEAD_KEY 32
#define AEAD_NONCE 12
#define AEAD_TAG 16

static inline uint32_t aead_load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t aead_rotate(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

/* RFC 8439 section 2.1. */
#define AEAD_QUARTER_ROUND(a, b, c, d) \
	do { \
		a += b; \
		d = aead_rotate(d ^ a, 16); \
		c += d; \
		b = aead_rotate(b ^ c, 12); \
		a += b; \
		d = aead_rotate(d ^ a, 8); \
		c += d; \
		b = aead_rotate(b ^ c, 7); \
	} while (0)

/* The next 64 bytes of the key stream; the state's word 12 counts them (RFC 8439 section 2.3). */
static inline void aead_block(const uint32_t in[16], uint32_t out[16])
{
	uint32_t x0 = in[0], x1 = in[1], x2 = in[2], x3 = in[3], x4 = in[4], x5 = in[5], x6 = in[6], x7 = in[7];
	uint32_t x8 = in[8], x9 = in[9], x10 = in[10], x11 = in[11], x12 = in[12], x13 = in[13], x14 = in[14],
		 x15 = in[15];

	for (int i = 0; i < 10; i++) {
		AEAD_QUARTER_ROUND(x0, x4, x8, x12);
		AEAD_QUARTER_ROUND(x1, x5, x9, x13);
		AEAD_QUARTER_ROUND(x2, x6, x10, x14);
		AEAD_QUARTER_ROUND(x3, x7, x11, x15);
		AEAD_QUARTER_ROUND(x0, x5, x10, x15);
		AEAD_QUARTER_ROUND(x1, x6, x11, x12);
		AEAD_QUARTER_ROUND(x2, x7, x8, x13);
		AEAD_QUARTER_ROUND(x3, x4, x9, x14);
	}
	out[0] = x0 + in[0];
	out[1] = x1 + in[1];
	out[2] = x2 + in[2];
	out[3] = x3 + in[3];
	out[4] = x4 + in[4];
	out[5] = x5 + in[5];
	out[6] = x6 + in[6];
	out[7] = x7 + in[7];
	out[8] = x8 + in[8];
	out[9] = x9 + in[9];
	out[10] = x10 + in[10];
	out[11] = x11 + in[11];
	out[12] = x12 + in[12];
	out[13] = x13 + in[13];
	out[14] = x14 + in[14];
	out[15] = x15 + in[15];
}

static inline void aead_state(uint32_t state[16], const uint8_t *key, const uint8_t *nonce)
{
	state[0] = 0x61707865; /* "expand 32-byte k" */
	state[1] = 0x3320646e;
	state[2] = 0x79622d32;
	state[3] = 0x6b206574;
	for (int i = 0; i < 8; i++)
		state[4 + i] = aead_load32(key + 4 * i);
	state[12] = 0;
	for (int i = 0; i < 3; i++)
		state[13 + i] = aead_load32(nonce + 4 * i);
}

/* Encrypts or decrypts in place; the key stream begins with block 1 (RFC 8439 section 2.8). */
static inline void aead_crypt(uint32_t state[16], uint8_t *data, uint32_t len)
{
	uint32_t stream[16];

	for (uint32_t at = 0; at < len; at += 64) {
		uint32_t n = len - at < 64 ? len - at : 64, i;

		state[12]++;
		aead_block(state, stream);
		for (i = 0; n - i >= 8; i += 8) {
			uint64_t word;

			memcpy(&word, data + at + i, sizeof(word));
			word ^= stream[i / 4] | (uint64_t)stream[i / 4 + 1] << 32;
			memcpy(data + at + i, &word, sizeof(word));
		}
		for (; i < n; i++)
			data[at + i] ^= (uint8_t)(stream[i / 4] >> 8 * (i % 4));
	}
}

/* A sum modulo 2^130 - 5 in five limbs of 26 bits, and its multiplier (RFC 8439 section 2.5). */
struct aead_poly {
	uint32_t h[5], r[5], s[4];
};

static inline void aead_poly_begin(struct aead_poly *p, const uint32_t key[8])
{
	memset(p, 0, sizeof(*p));
	p->r[0] = key[0] & 0x3ffffff;
	p->r[1] = (key[0] >> 26 | key[1] << 6) & 0x3ffff03;
	p->r[2] = (key[1] >> 20 | key[2] << 12) & 0x3ffc0ff;
	p->r[3] = (key[2] >> 14 | key[3] << 18) & 0x3f03fff;
	p->r[4] = key[3] >> 8 & 0x00fffff;
	for (int i = 0; i < 4; i++)
		p->s[i] = p->r[i + 1] * 5;
}

/* Adds 16 bytes, given as four words, and multiplies. */
static inline void aead_poly_add(struct aead_poly *p, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3)
{
	uint64_t h0 = p->h[0] + (w0 & 0x3ffffff), h1 = p->h[1] + ((w0 >> 26 | w1 << 6) & 0x3ffffff);
	uint64_t h2 = p->h[2] + ((w1 >> 20 | w2 << 12) & 0x3ffffff), h3 = p->h[3] + ((w2 >> 14 | w3 << 18) & 0x3ffffff);
	uint64_t h4 = p->h[4] + (w3 >> 8 | 1 << 24);
	uint64_t r0 = p->r[0], r1 = p->r[1], r2 = p->r[2], r3 = p->r[3], r4 = p->r[4];
	uint64_t s1 = p->s[0], s2 = p->s[1], s3 = p->s[2], s4 = p->s[3];
	uint64_t d0 = h0 * r0 + h1 * s4 + h2 * s3 + h3 * s2 + h4 * s1;
	uint64_t d1 = h0 * r1 + h1 * r0 + h2 * s4 + h3 * s3 + h4 * s2 + (d0 >> 26);
	uint64_t d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s4 + h4 * s3 + (d1 >> 26);
	uint64_t d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + h4 * s4 + (d2 >> 26);
	uint64_t d4 = h0 * r4 + h1 * r3 + h2 * r2 + h3 * r1 + h4 * r0 + (d3 >> 26);

	d0 = (d0 & 0x3ffffff) + (d4 >> 26) * 5;
	p->h[0] = d0 & 0x3ffffff;
	p->h[1] = (uint32_t)((d1 & 0x3ffffff) + (d0 >> 26));
	p->h[2] = d2 & 0x3ffffff;
	p->h[3] = d3 & 0x3ffffff;
	p->h[4] = d4 & 0x3ffffff;
}

/* Adds len bytes, and zeros up to a multiple of 16. */
static inline void aead_poly_bytes(struct aead_poly *p, const uint8_t *from, uint32_t len)
{
	uint32_t at, w[4];

	for (at = 0; len - at >= 16; at += 16)
		aead_poly_add(p, aead_load32(from + at), aead_load32(from + at + 4), aead_load32(from + at + 8),
			      aead_load32(from + at + 12));
	if (at == len)
		return;
	memset(w, 0, sizeof(w));
	memcpy(w, from + at, len - at);
	aead_poly_add(p, w[0], w[1], w[2], w[3]);
}

/* The sum as four words, plus the second half of the key. */
static inline void aead_poly_end(struct aead_poly *p, const uint32_t key[8], uint32_t tag[4])
{
	uint32_t c, g[5], keep;
	uint64_t f = 0;

	c = p->h[1] >> 26; /* the only limb that may have more than 26 bits */
	p->h[1] &= 0x3ffffff;
	for (int i = 2; i < 5; i++) {
		p->h[i] += c;
		c = p->h[i] >> 26;
		p->h[i] &= 0x3ffffff;
	}
	p->h[0] += c * 5;
	c = p->h[0] >> 26;
	p->h[0] &= 0x3ffffff;
	p->h[1] += c;
	c = 5; /* g = h + 5 - 2^130; if that is negative, h */
	for (int i = 0; i < 5; i++) {
		g[i] = p->h[i] + c;
		c = g[i] >> 26;
		g[i] &= 0x3ffffff;
	}
	keep = c - 1;
	for (int i = 0; i < 5; i++)
		g[i] = (p->h[i] & keep) | (g[i] & ~keep);
	tag[0] = g[0] | g[1] << 26;
	tag[1] = g[1] >> 6 | g[2] << 20;
	tag[2] = g[2] >> 12 | g[3] << 14;
	tag[3] = g[3] >> 18 | g[4] << 8;
	for (int i = 0; i < 4; i++) {
		f += (uint64_t)tag[i] + key[4 + i];
		tag[i] = (uint32_t)f;
		f >>= 32;
	}
}

/* The tag of encrypted data (RFC 8439 section 2.8). The state's count is 0. */
static inline void aead_tag(const uint32_t state[16], const uint8_t *ad, uint32_t ad_len, const uint8_t *data,
			    uint32_t len, uint32_t tag[4])
{
	struct aead_poly poly;
	uint32_t key[16];

	aead_block(state, key);
	aead_poly_begin(&poly, key);
	aead_poly_bytes(&poly, ad, ad_len);
	aead_poly_bytes(&poly, data, len);
	aead_poly_add(&poly, ad_len, 0, len, 0);
	aead_poly_end(&poly, key, tag);
}

/*
 * Encrypts len bytes in place and writes AEAD_TAG bytes behind them. ad_len bytes at ad are authenticated with them. Never use a nonce
 * twice with one key.
 */
static inline void aead_seal(const uint8_t *key, const uint8_t *nonce, const uint8_t *ad, uint32_t ad_len,
			     uint8_t *data, uint32_t len)
{
	uint32_t state[16], tag[4];

	aead_state(state, key, nonce);
	aead_crypt(state, data, len);
	state[12] = 0;
	aead_tag(state, ad, ad_len, data, len, tag);
	memcpy(data + len, tag, sizeof(tag));
}

/* Decrypts len bytes in place, which AEAD_TAG bytes follow. 0; or -1 if the tag is wrong, and leaves the bytes unchanged. */
static inline int aead_open(const uint8_t *key, const uint8_t *nonce, const uint8_t *ad, uint32_t ad_len, uint8_t *data,
			    uint32_t len)
{
	uint32_t state[16], tag[4], differ = 0;

	aead_state(state, key, nonce);
	aead_tag(state, ad, ad_len, data, len, tag);
	for (int i = 0; i < 4; i++)
		differ |= tag[i] ^ aead_load32(data + len + 4 * i);
	if (differ)
		return -1;
	aead_crypt(state, data, len);
	return 0;
}

#endif
