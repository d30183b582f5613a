/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * AES-128 in ECB mode (FIPS 197), byte by byte, its S-box computed by the first request. Request: the key, then blocks. Reply:
 * the blocks enciphered.
 */
#include <lambda.h>

#define BLOCKS 80

static uint8_t sbox[256];

static uint8_t twice(uint8_t x)
{
	return x << 1 ^ (x & 0x80 ? 0x1b : 0);
}

static uint8_t rotate(uint8_t x, int by)
{
	return x << by | x >> (8 - by);
}

/* p runs through the powers of a generator of the field, q through those of its inverse. */
static void make_sbox(void)
{
	uint8_t p = 1, q = 1;

	do {
		p ^= twice(p);
		q ^= q << 1;
		q ^= q << 2;
		q ^= q << 4;
		if (q & 0x80)
			q ^= 0x09;
		sbox[p] = q ^ rotate(q, 1) ^ rotate(q, 2) ^ rotate(q, 3) ^ rotate(q, 4) ^ 0x63;
	} while (p != 1);
	sbox[0] = 0x63;
}

static void expand(uint8_t keys[11][16], const uint8_t *key)
{
	uint8_t *k = keys[0], round = 1;

	for (int i = 0; i < 16; i++)
		k[i] = key[i];
	for (int i = 16; i < 176; i++) {
		uint8_t t = k[i - 4];

		if (i % 16 == 0)
			t = sbox[k[i - 3]] ^ round;
		else if (i % 16 < 3)
			t = sbox[k[i - 3]];
		else if (i % 16 == 3) {
			t = sbox[k[i - 7]];
			round = twice(round);
		}
		k[i] = k[i - 16] ^ t;
	}
}

static void add(uint8_t *s, const uint8_t *key)
{
	for (int i = 0; i < 16; i++)
		s[i] ^= key[i];
}

static void substitute_and_shift(uint8_t *s)
{
	uint8_t t[16];

	for (int i = 0; i < 16; i++)
		t[i] = sbox[s[(i + i % 4 * 4) % 16]];
	for (int i = 0; i < 16; i++)
		s[i] = t[i];
}

static void mix(uint8_t *s)
{
	for (uint8_t *c = s; c < s + 16; c += 4) {
		uint8_t all = c[0] ^ c[1] ^ c[2] ^ c[3], first = c[0];

		for (int i = 0; i < 4; i++)
			c[i] ^= all ^ twice(c[i] ^ (i < 3 ? c[i + 1] : first));
	}
}

static void encipher(uint8_t *s, uint8_t keys[11][16])
{
	add(s, keys[0]);
	for (int round = 1; round <= 10; round++) {
		substitute_and_shift(s);
		if (round < 10)
			mix(s);
		add(s, keys[round]);
	}
}

int aes128(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[16 + 16 * BLOCKS], keys[11][16];
	uint32_t blocks = lambda_read(headers, in, sizeof(in)) / 16;

	(void)match_data;
	if (!blocks)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	if (!sbox[0])
		make_sbox();
	expand(keys, in);
	for (uint32_t i = 1; i < blocks; i++)
		encipher(in + 16 * i, keys);
	return lambda_write(headers, in + 16, 16 * (blocks - 1));
}
