/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Answers with as many whole packets as the method says. Their content does not matter. */
#include <lambda.h>

#define PACKETS 8

static const uint8_t text[PACKETS * LN_RPC_FRAGMENT + LAMBDA_WINDOW];

int long_text(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t packets = match_data->method;

	if (!packets || packets > PACKETS)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	return lambda_reply_from(headers, match_data, text, 0, packets * LN_RPC_FRAGMENT);
}
