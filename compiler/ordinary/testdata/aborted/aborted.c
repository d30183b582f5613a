/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts its requests, and aborts some of them deep in a call. */
#include <lambda.h>
#include <stdlib.h>

static uint32_t requests;

static uint32_t half(uint32_t n)
{
	if (n & 1)
		abort();
	return n / 2;
}

int aborted(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t n[2];

	requests++;
	if (lambda_read(headers, n, sizeof(n[0])) != sizeof(n[0]))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	n[0] = half(n[0]);
	n[1] = requests;
	return lambda_write(headers, n, sizeof(n));
}
