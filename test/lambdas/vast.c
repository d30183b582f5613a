// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A fixture with much memory of each kind, which it does not touch: VAST bytes in each. */
#define LAMBDA_HEAP VAST

#include "lambda.h"

#include <stdlib.h>

LAMBDA_KEPT uint8_t kept[VAST];
static uint8_t zero[VAST];
static uint8_t given[VAST] = { 1 };

int vast(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t at = match_data->method;

	if (at) /* no test asks: else the compiler knew their content */
		kept[at % VAST] = zero[at % VAST]++ + given[at % VAST]++;
	return lambda_reply(headers, 0, match_data->payload_len);
}
