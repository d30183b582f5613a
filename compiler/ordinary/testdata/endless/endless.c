/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replies with what stands before the first full stop, in capitals. Nothing but a return ends its loop. */
#include "lambda.h"

int endless(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t at = 0;

	for (;;) {
		uint8_t *letter = payload(headers, at, 1);

		if (!letter)
			return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
		if (*letter == '.')
			return lambda_reply(headers, 0, at);
		if (*letter >= 'a' && *letter <= 'z')
			*letter -= 'a' - 'A';
		at++;
	}
}
