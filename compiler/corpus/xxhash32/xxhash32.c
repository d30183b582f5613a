/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xxHash32. Request: the seed, then the text. Reply: its hash. */
#include <lambda.h>
#include <string.h>

static const uint32_t P1 = 2654435761u, P2 = 2246822519u, P3 = 3266489917u, P4 = 668265263u, P5 = 374761393u;

static uint32_t rotate(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

static uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t step(uint32_t lane, uint32_t in)
{
	return rotate(lane + in * P2, 13) * P1;
}

static uint32_t hash(const uint8_t *p, uint32_t n, uint32_t seed)
{
	const uint8_t *end = p + n;
	uint32_t h = seed + P5;

	if (n >= 16) {
		uint32_t lane[4] = { seed + P1 + P2, seed + P2, seed, seed - P1 };

		for (; end - p >= 16; p += 16)
			for (int i = 0; i < 4; i++)
				lane[i] = step(lane[i], word(p + 4 * i));
		h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
	}
	h += n;
	for (; end - p >= 4; p += 4)
		h = rotate(h + word(p) * P3, 17) * P4;
	for (; p < end; p++)
		h = rotate(h + *p * P5, 11) * P1;
	h = (h ^ h >> 15) * P2;
	h = (h ^ h >> 13) * P3;
	return h ^ h >> 16;
}

int xxhash32(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400];
	uint32_t n = lambda_read(headers, in, sizeof(in)), h;

	(void)match_data;
	if (n < 4)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	h = hash(in + 4, n - 4, word(in));
	return lambda_write(headers, &h, sizeof(h));
}
