// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A fixture that calls: sends its payload to memcached as it is (method 0), or to the second service (method 1), and answers
 * with the cookie, the payload's first byte, and what the service said. From method 16 on: with five bytes from there on. With
 * method 128, the call's key is that byte.
 */
#include "lambda.h"

#define APPEND 64 /* the method that ends the line of the command */
#define KEYED 128

int caller(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *p;

	if (match_data->event == LAMBDA_REPLY) {
		p = payload(headers, -1, 1);
		if (!p)
			return RETURN_FAULT;
		*p = (uint8_t)match_data->cookie[0];
		if (match_data->method >= 16 && match_data->method < APPEND)
			return lambda_reply(headers, (int32_t)match_data->method, 5);
		return lambda_reply(headers, -1, match_data->payload_len + 1);
	}
	p = payload(headers, 0, 1);
	if (!p)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	match_data->cookie[0] = *p;
	if (match_data->method == KEYED)
		return lambda_call_key(headers, 0, 0, match_data->payload_len, *p);
	if (match_data->method == APPEND) {
		p = lambda_put(headers, match_data->payload_len, 2);
		if (!p)
			return RETURN_FAULT;
		p[0] = '\r';
		p[1] = '\n';
		return lambda_call(headers, 0, 0, match_data->payload_len + 2);
	}
	return lambda_call(headers, match_data->method & 15, 0, match_data->payload_len);
}
