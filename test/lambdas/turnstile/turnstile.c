/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Answers with an HTTP status of its own, where there is no room for as many as ask; a number alone is a status of its own. */
#include "lambda.h"

int turnstile(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *people = payload(headers, 0, 1);

	if (!people || match_data->payload_len == 0)
		return lambda_fail(headers, 42);
	if (*people > '3')
		return lambda_fail(headers, LN_STATUS_HTTP(429));
	return lambda_reply(headers, 0, 1);
}
