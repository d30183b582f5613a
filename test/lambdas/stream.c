// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A fixture in message mode stream. Method 0 inverts every byte and answers each packet; method 1 takes the bytes in and answers
 * the whole message with their sum.
 */
#include "lambda.h"

static uint64_t sum[LAMBDA_IN_FLIGHT];

int stream(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t record = match_data->record, n = match_data->payload_len;
	uint64_t add = 0;
	uint8_t *p;

	if (match_data->event == LAMBDA_COMPLETE) {
		p = payload(headers, 0, 8);
		if (!p || record >= LAMBDA_IN_FLIGHT)
			return RETURN_FAULT;
		*(uint64_t *)p = sum[record];
		return lambda_reply(headers, 0, 8);
	}
	if (match_data->method == 1 && match_data->repeat)
		return RETURN_KEEP;
	for (uint32_t i = 0; i < n; i++) {
		p = payload(headers, (int32_t)i, 1);
		if (!p)
			return RETURN_FAULT;
		add += *p;
		*p = ~*p;
	}
	if (match_data->method == 0)
		return lambda_reply_part(headers, 0, n, match_data->message_len);
	if (record >= LAMBDA_IN_FLIGHT)
		return RETURN_FAULT;
	/* Packets arrive in any order: the fixture adds up all messages that ever used the record. */
	__atomic_fetch_add(&sum[record], add, __ATOMIC_RELAXED);
	return RETURN_KEEP;
}
