/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SHA-1 (FIPS 180-4). Reply: the digest of the request. */
#include <lambda.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

static uint32_t mix(int t, uint32_t b, uint32_t c, uint32_t d)
{
	switch (t / 20) {
	case 0:
		return ((b & c) | (~b & d)) + 0x5a827999;
	case 1:
		return (b ^ c ^ d) + 0x6ed9eba1;
	case 2:
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	default:
		return (b ^ c ^ d) + 0xca62c1d6;
	}
}

static void block(uint32_t h[5], const uint8_t *p)
{
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (int t = 0; t < 16; t++)
		w[t] = (uint32_t)p[4 * t] << 24 | p[4 * t + 1] << 16 | p[4 * t + 2] << 8 | p[4 * t + 3];
	for (int t = 16; t < 80; t++)
		w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (int t = 0; t < 80; t++) {
		uint32_t next = rotate(a, 5) + mix(t, b, c, d) + e + w[t];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

int sha1(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1408 + 64], out[20];
	uint32_t n = lambda_read(headers, in, 1400), padded = (n + 8) / 64 * 64 + 64;
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };

	(void)match_data;
	memset(in + n, 0, padded - n);
	in[n] = 0x80;
	for (int i = 0; i < 4; i++)
		in[padded - 1 - i] = n * 8 >> 8 * i;
	for (uint32_t at = 0; at < padded; at += 64)
		block(h, in + at);
	for (int i = 0; i < 20; i++)
		out[i] = h[i / 4] >> (24 - i % 4 * 8);
	return lambda_write(headers, out, sizeof(out));
}
