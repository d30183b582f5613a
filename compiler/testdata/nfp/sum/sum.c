/* The sum and the product of two numbers, by way of local objects. */
#include <lambda.h>

int sum(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t in[2] = { 0 }, out[2];

	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	out[0] = in[0] + in[1];
	out[1] = in[0] * in[1];
	return lambda_write(headers, out, sizeof(out));
}
