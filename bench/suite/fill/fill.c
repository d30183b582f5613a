/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replies with as many bytes as the method says. */
#include <lambda.h>

static uint8_t bytes[1024];

int fill(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	if (match_data->method > sizeof(bytes))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	return lambda_write(headers, bytes, match_data->method);
}
