/* Answers a whole message with its first four bytes, and counts the messages across revisions. */
#include "lambda.h"

static uint32_t messages LAMBDA_KEPT;

int assemble(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	messages++;
	if (!payload(headers, 0, 4))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	return lambda_reply(headers, 0, 4);
}
