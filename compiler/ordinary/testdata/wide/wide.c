/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Quotients and remainders of two numbers of 128 bits, unsigned and signed. */
#include <lambda.h>

int wide(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	unsigned __int128 in[2], out[4];
	__int128 a, b;

	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	a = in[0];
	b = in[1];
	out[0] = in[0] / in[1];
	out[1] = in[0] % in[1];
	out[2] = a / b;
	out[3] = a % b;
	return lambda_write(headers, out, sizeof(out));
}
