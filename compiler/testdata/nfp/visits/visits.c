/* Counts requests by their method, and answers with the request, without its first byte. */
#include <lambda.h>

LAMBDA_COUNTERS(requests, 4);

int visits(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	if (!match_data->payload_len)
		return RETURN_DROP;
	if (match_data->method > 3)
		return RETURN_FAULT;
	lambda_count(requests, match_data->method, 1);
	return lambda_reply(headers, 1, match_data->payload_len - 1);
}
