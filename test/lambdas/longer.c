// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A fixture that calls a service with its payload, and makes what it answers longer: by as many x as the method says, written, or
 * from method 4096 on, from an array. The answer's prefix is used to its end on the way.
 */
#include "lambda.h"
#include <string.h>

#define FROM_ARRAY 4096

static uint8_t text[LAMBDA_CPUS][3 * LAMBDA_WINDOW];

int longer(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *to = text[lambda_cpu()], *first;
	uint32_t n, more = match_data->method % FROM_ARRAY;

	if (match_data->event != LAMBDA_REPLY)
		return lambda_call(headers, 0, 0, match_data->payload_len);
	first = payload(headers, -LN_PREFIX, 1);
	if (!first || more > LAMBDA_WINDOW)
		return RETURN_FAULT;
	*first = 1;
	n = lambda_read(headers, to, LAMBDA_WINDOW);
	memset(to + n, 'x', more);
	if (match_data->method >= FROM_ARRAY)
		return lambda_reply_from(headers, match_data, text, lambda_cpu() * sizeof(text[0]), n + more);
	return lambda_write(headers, to, n + more);
}
