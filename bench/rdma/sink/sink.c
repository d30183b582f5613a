/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes a message and answers with its length, its first byte and its last: the benchmark measures how it got there. */
#include <lambda.h>

int sink(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t n = match_data->payload_len;
	uint8_t *first = payload(headers, 0, 6), *last = payload(headers, (int32_t)n - 1, 1);

	if (!n || !first || !last)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	first[5] = *last;
	first[4] = *first;
	*(uint32_t *)first = n;
	return lambda_reply(headers, 0, 6);
}
