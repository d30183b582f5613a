// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A fixture in message mode assemble: answers the message reversed, or, with a method, that, the message's length, and how often it ran.
 * One method has it use an address outside of its memory.
 */
#include <lambda.h>
#include <string.h>

enum { OUTSIDE = 1000 };

static uint32_t runs;
static uint8_t table[64];

int mirror(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *message = lambda_message(headers, match_data);
	uint32_t n = match_data->payload_len;
	uint32_t said[3] = { match_data->method, n, __sync_fetch_and_add(&runs, 1) + 1 };

	if (match_data->method == OUTSIDE)
		return table[match_data->request | 1 << 30]++;
	if (match_data->method) {
		memcpy(message, said, sizeof(said));
		return lambda_reply(headers, 0, sizeof(said));
	}
	for (uint32_t i = 0; i < n / 2; i++) {
		uint8_t t = message[i];

		message[i] = message[n - 1 - i];
		message[n - 1 - i] = t;
	}
	return lambda_reply(headers, 0, n);
}
