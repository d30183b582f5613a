/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Indices that are within an array for reasons of arithmetic, which the kernel's verifier does not know. */
#include <lambda.h>
#include <string.h>

int remainder(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[4] = { 0 }, many[600];
	uint8_t small = 0;
	uint32_t out[4];

	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	memset(many, 0, sizeof(many));
	many[in[0] % 5] = 1;
	many[in[1] / 9 + 5] = 2;
	small = in[2] % 7;
	small += small & 1 ? in[3] % 3 : 9;
	many[small + 40] = 3;
	many[(uint8_t)(in[0] * in[1]) % 11 ^ 3] += 4;
	out[0] = many[in[3] & 31];
	out[1] = many[__builtin_popcount(in[1]) + 40];
	out[2] = many[in[1] / 9 + 5];
	out[3] = small;
	return lambda_write(headers, out, sizeof(out));
}
