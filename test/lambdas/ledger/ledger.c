/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fixture that knows how often each of its requests ran. A request is a number below LEDGER_MOST; the answer is the number, its
 * multiple by a constant, how often it ran by now, and how often all did. Method 1 fails after it has counted, method 2 says
 * nothing.
 */
#include <lambda.h>

#define LEDGER_MOST (1 << 17)

static uint32_t runs[LEDGER_MOST];
static uint32_t total;

int ledger(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t *words = (uint32_t *)payload(headers, 0, 16);
	uint32_t number;

	if (!words || match_data->payload_len < 16)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	number = words[0] & (LEDGER_MOST - 1);
	words[1] = number * 2654435761u;
	words[2] = __sync_fetch_and_add(&runs[number], 1) + 1;
	words[3] = __sync_fetch_and_add(&total, 1) + 1;
	if (match_data->method == 1)
		return RETURN_FAULT;
	if (match_data->method == 2)
		return RETURN_DROP;
	return lambda_reply(headers, 0, 16);
}
