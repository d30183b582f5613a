/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SipHash-2-4 of 64 bits (Aumasson and Bernstein, 2012). Request: the 16-byte key, then the text. Reply: its tag. */
#include <lambda.h>
#include <string.h>

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static struct state rounds(struct state s, int n)
{
	while (n-- > 0) {
		s.v0 += s.v1;
		s.v1 = rotate(s.v1, 13) ^ s.v0;
		s.v0 = rotate(s.v0, 32);
		s.v2 += s.v3;
		s.v3 = rotate(s.v3, 16) ^ s.v2;
		s.v0 += s.v3;
		s.v3 = rotate(s.v3, 21) ^ s.v0;
		s.v2 += s.v1;
		s.v1 = rotate(s.v1, 17) ^ s.v2;
		s.v2 = rotate(s.v2, 32);
	}
	return s;
}

static struct state absorb(struct state s, uint64_t word)
{
	s.v3 ^= word;
	s = rounds(s, 2);
	s.v0 ^= word;
	return s;
}

static uint64_t tag(const uint8_t *key, const uint8_t *p, uint32_t n)
{
	uint64_t k[2], word;
	uint32_t i;

	memcpy(k, key, sizeof(k));
	struct state s = { k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d, k[0] ^ 0x6c7967656e657261,
			   k[1] ^ 0x7465646279746573 };

	for (i = 0; i + 8 <= n; i += 8) {
		memcpy(&word, p + i, 8);
		s = absorb(s, word);
	}
	word = (uint64_t)n << 56;
	for (int shift = 0; i < n; i++, shift += 8)
		word |= (uint64_t)p[i] << shift;
	s = absorb(s, word);
	s.v2 ^= 0xff;
	s = rounds(s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

int siphash(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400];
	uint32_t n = lambda_read(headers, in, sizeof(in));
	uint64_t t;

	(void)match_data;
	if (n < 16)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	t = tag(in, in + 16, n - 16);
	return lambda_write(headers, &t, sizeof(t));
}
