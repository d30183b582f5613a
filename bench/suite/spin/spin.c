/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A run of any length: x = x / 2 + 1 as often as the method says, each of which waits for the one before. BPF computes floating point in
 * software, in some hundred instructions: a loop of a few would run up to a fifth faster or slower by where the kernel puts the program.
 * Request and reply: x.
 */
#include <lambda.h>

int spin(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	float x;

	if (lambda_read(headers, &x, sizeof(x)) != sizeof(x))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (uint32_t i = 0; i < match_data->method; i++)
		x = x * 0.5f + 1;
	return lambda_write(headers, &x, sizeof(x));
}
