/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A chain of multiply-adds, x = x * a + b, each of which waits for the one before. The method says how often, in single precision, or
 * in double where its highest bit is set. Request: x, a, b, double each. Reply: x in the end.
 */
#include <lambda.h>

static double chain(double x, double a, double b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		x = x * a + b;
	return x;
}

static float chain_single(float x, float a, float b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		x = x * a + b;
	return x;
}

int multiply_add(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t n = match_data->method & 0x7fffffff;
	double in[3], x;

	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	x = match_data->method >> 31 ? chain(in[0], in[1], in[2], n) : chain_single(in[0], in[1], in[2], n);
	return lambda_write(headers, &x, sizeof(x));
}
