// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A fixture in message mode assemble: answers the message reversed, in place. Method 1 answers how often it has run. */
#include "lambda.h"

static uint32_t runs;

int assemble(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t n = match_data->payload_len;
	uint32_t count = __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED);
	uint8_t *a, *b, t;

	if (match_data->method == 1) {
		a = payload(headers, 0, 4);
		if (!a)
			return RETURN_FAULT;
		*(uint32_t *)a = count;
		return lambda_reply(headers, 0, 4);
	}
	for (uint32_t i = 0; i < n / 2; i++) {
		a = payload(headers, (int32_t)i, 1);
		b = payload(headers, (int32_t)(n - 1 - i), 1);
		if (!a || !b)
			return RETURN_FAULT;
		t = *a;
		*a = *b;
		*b = t;
	}
	return lambda_reply(headers, 0, n);
}
