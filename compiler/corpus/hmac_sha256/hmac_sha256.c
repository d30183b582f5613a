/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HMAC-SHA-256 (RFC 2104), the hash as a stream. Request: the key's length in one byte, the key, the text. Reply: the tag.
 */
#include <lambda.h>
#include <string.h>

static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static void block(uint32_t h[8], const uint8_t *p)
{
	uint32_t w[64], s[8];

	for (int t = 0; t < 16; t++)
		w[t] = (uint32_t)p[4 * t] << 24 | p[4 * t + 1] << 16 | p[4 * t + 2] << 8 | p[4 * t + 3];
	for (int t = 16; t < 64; t++)
		w[t] = w[t - 16] + w[t - 7] + (rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3) +
		       (rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10);
	memcpy(s, h, sizeof(s));
	for (int t = 0; t < 64; t++) {
		uint32_t t1 = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + K[t] + w[t] +
			      ((s[4] & s[5]) ^ (~s[4] & s[6]));
		uint32_t t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
			      ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += s[i];
}

struct hash {
	uint32_t h[8];
	uint32_t total;
	uint8_t pending[64];
};

static void hash_init(struct hash *s)
{
	static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, start, sizeof(start));
	s->total = 0;
}

static void hash_update(struct hash *s, const uint8_t *p, uint32_t n)
{
	while (n--) {
		s->pending[s->total++ % 64] = *p++;
		if (s->total % 64 == 0)
			block(s->h, s->pending);
	}
}

static void hash_final(struct hash *s, uint8_t out[32])
{
	static const uint8_t one = 0x80, zero = 0;
	uint64_t bits = s->total * 8ull;
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = bits >> (56 - 8 * i);
	hash_update(s, &one, 1);
	while (s->total % 64 != 56)
		hash_update(s, &zero, 1);
	hash_update(s, length, sizeof(length));
	for (int i = 0; i < 32; i++)
		out[i] = s->h[i / 4] >> (24 - i % 4 * 8);
}

static void pad_key(uint8_t pad[64], const uint8_t *key, uint32_t n, uint8_t with)
{
	struct hash s;

	memset(pad, 0, 64);
	if (n > 64) {
		hash_init(&s);
		hash_update(&s, key, n);
		hash_final(&s, pad);
	} else {
		memcpy(pad, key, n);
	}
	for (int i = 0; i < 64; i++)
		pad[i] ^= with;
}

static void hmac(uint8_t out[32], const uint8_t *key, uint32_t key_len, const uint8_t *text, uint32_t len)
{
	struct hash s;
	uint8_t pad[64];

	pad_key(pad, key, key_len, 0x36);
	hash_init(&s);
	hash_update(&s, pad, sizeof(pad));
	hash_update(&s, text, len);
	hash_final(&s, out);
	pad_key(pad, key, key_len, 0x5c);
	hash_init(&s);
	hash_update(&s, pad, sizeof(pad));
	hash_update(&s, out, 32);
	hash_final(&s, out);
}

int hmac_sha256(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400], out[32];
	uint32_t n = lambda_read(headers, in, sizeof(in)), key = n ? in[0] : 0;

	(void)match_data;
	if (n < 1 + key)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	hmac(out, in + 1, key, in + 1 + key, n - 1 - key);
	return lambda_write(headers, out, sizeof(out));
}
