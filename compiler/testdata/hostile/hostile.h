/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Around each hostile program: a request whose first byte is not zero runs attack(), and is echoed if that returns, or ends with
 * VERDICT where the program defines one; others are echoed at once.
 */
#include <lambda.h>
#include <stdint.h>

static volatile uint64_t sink;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k);

int hostile(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[64];
	uint32_t n = lambda_read(headers, in, sizeof(in));

	if (n && in[0]) {
		attack(headers, in[0]);
#ifdef VERDICT
		return VERDICT;
#endif
	}
	return lambda_write(headers, in, n);
}
