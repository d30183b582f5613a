/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A histogram of the request's bytes, and its cumulative form. Reply: both for each sixteen values, 16 bits each. */
#include <lambda.h>

int histogram(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400];
	uint16_t count[256] = { 0 }, out[2][16] = { { 0 } };
	int n = lambda_read(headers, in, sizeof(in));

	(void)match_data;
	for (int i = 0; i < n; i++)
		count[in[i]]++;
	for (int i = 0; i < 256; i++)
		out[0][i / 16] += count[i];
	for (int i = 0, sum = 0; i < 16; i++)
		out[1][i] = sum += out[0][i];
	return lambda_write(headers, out, sizeof(out));
}
