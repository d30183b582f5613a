/* Answers with a part of a text, which the request names: where it begins, and how long it is. */
#include <lambda.h>

#define TEXT 6000

static uint8_t text[TEXT + LAMBDA_WINDOW];

int reply_assembled(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct {
		uint32_t at, len;
	} part;

	if (lambda_read(headers, &part, sizeof(part)) != sizeof(part))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = i * 37 >> 3;
	return lambda_reply_from(headers, match_data, text, part.at, part.len);
}
