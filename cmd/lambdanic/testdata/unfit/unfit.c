/* Keeps a global object, which no card has. */
#include <lambda.h>

static uint64_t seen;

int unfit(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	__sync_fetch_and_add(&seen, match_data->payload_len);
	return lambda_reply(headers, 0, 0);
}
