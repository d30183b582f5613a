/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A Bloom filter of 4096 bits and four hashes. Request: lines, of which those that begin with + are added and the others are
 * looked up. Reply: for each look-up y or n.
 */
#include <lambda.h>

#define BITS 4096
#define HASHES 4

static uint32_t fnv1a(const char *p, int n)
{
	uint32_t h = 2166136261u;

	while (n--)
		h = (h ^ (uint8_t)*p++) * 16777619u;
	return h;
}

static uint32_t place(uint32_t h, int i)
{
	return (h + i * (h >> 16 | 1)) % BITS;
}

static void add(uint64_t *filter, uint32_t h)
{
	for (int i = 0; i < HASHES; i++)
		filter[place(h, i) / 64] |= 1ull << place(h, i) % 64;
}

static int has(const uint64_t *filter, uint32_t h)
{
	for (int i = 0; i < HASHES; i++)
		if (!(filter[place(h, i) / 64] >> place(h, i) % 64 & 1))
			return 0;
	return 1;
}

int bloom(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint64_t filter[BITS / 64] = { 0 };
	char in[1400], out[1400];
	int n = lambda_read(headers, in, sizeof(in)), answers = 0;

	(void)match_data;
	for (int at = 0, end; at < n; at = end + 1) {
		for (end = at; end < n && in[end] != '\n'; end++)
			;
		if (end > at && in[at] == '+')
			add(filter, fnv1a(in + at + 1, end - at - 1));
		else
			out[answers++] = has(filter, fnv1a(in + at, end - at)) ? 'y' : 'n';
	}
	return lambda_write(headers, out, answers);
}
