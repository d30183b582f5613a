/* Flips the case of the request's first letter. */
#include "lambda.h"

int flip(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *p = payload(headers, 0, 1);

	if (!p)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	p[0] ^= 0x20;
	return lambda_reply(headers, 0, match_data->payload_len);
}
