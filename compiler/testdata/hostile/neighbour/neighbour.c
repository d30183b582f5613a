/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lambda beside the hostile ones. Method 1 fills what it keeps from the request; every request is answered with the sums of
 * that, of a constant table and of a table that is not kept, and with how many requests it saw.
 */
#include <lambda.h>

#define WORDS 64

LAMBDA_KEPT uint64_t kept[WORDS];
LAMBDA_KEPT uint64_t served;
static uint64_t filled[WORDS];
static const uint32_t primes[8] = { 2, 3, 5, 7, 11, 13, 17, 19 };

struct answer {
	uint64_t kept, filled, primes, served;
};

int neighbour(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct answer answer = { .served = __sync_add_and_fetch(&served, 1) };
	uint64_t seed = 0;

	lambda_read(headers, &seed, sizeof(seed));
	for (uint32_t i = 0; i < WORDS; i++) {
		if (match_data->method == 1)
			kept[i] = filled[i] = seed * (i + 1);
		answer.kept += kept[i] ^ i;
		answer.filled += filled[i] ^ i;
	}
	for (uint32_t i = 0; i < 8; i++)
		answer.primes += primes[i];
	return lambda_write(headers, &answer, sizeof(answer));
}
