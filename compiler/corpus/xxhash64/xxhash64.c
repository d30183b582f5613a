/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xxHash64. Request: the seed, then the text. Reply: its hash. */
#include <lambda.h>
#include <string.h>

#define P1 11400714785074694791ull
#define P2 14029467366897019727ull
#define P3 1609587929392839161ull
#define P4 9650029242287828579ull
#define P5 2870177450012600261ull

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static uint64_t load(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	memcpy(&v, p, bytes);
	return v;
}

static uint64_t step(uint64_t lane, uint64_t in)
{
	return rotate(lane + in * P2, 31) * P1;
}

static uint64_t body(const uint8_t **p, const uint8_t *end, uint64_t seed)
{
	uint64_t lane[4] = { seed + P1 + P2, seed + P2, seed, seed - P1 }, h;

	for (; end - *p >= 32; *p += 32)
		for (int i = 0; i < 4; i++)
			lane[i] = step(lane[i], load(*p + 8 * i, 8));
	h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
	for (int i = 0; i < 4; i++)
		h = (h ^ step(0, lane[i])) * P1 + P4;
	return h;
}

static uint64_t hash(const uint8_t *p, uint32_t n, uint64_t seed)
{
	const uint8_t *end = p + n;
	uint64_t h = n >= 32 ? body(&p, end, seed) : seed + P5;

	h += n;
	for (; end - p >= 8; p += 8)
		h = rotate(h ^ step(0, load(p, 8)), 27) * P1 + P4;
	if (end - p >= 4) {
		h = rotate(h ^ load(p, 4) * P1, 23) * P2 + P3;
		p += 4;
	}
	for (; p < end; p++)
		h = rotate(h ^ *p * P5, 11) * P1;
	h = (h ^ h >> 33) * P2;
	h = (h ^ h >> 29) * P3;
	return h ^ h >> 32;
}

int xxhash64(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400];
	uint32_t n = lambda_read(headers, in, sizeof(in));
	uint64_t h;

	(void)match_data;
	if (n < 8)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	h = hash(in + 8, n - 8, load(in, 8));
	return lambda_write(headers, &h, sizeof(h));
}
