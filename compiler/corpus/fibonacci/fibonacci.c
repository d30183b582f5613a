/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fibonacci numbers by plain recursion. Request: which, in one byte, up to 16. Reply: it, 64 bits. */
#include <lambda.h>

static uint64_t fib(int n)
{
	return n < 2 ? (uint64_t)n : fib(n - 1) + fib(n - 2);
}

int fibonacci(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t n;
	uint64_t f;

	(void)match_data;
	if (lambda_read(headers, &n, 1) != 1 || n > 16)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	f = fib(n);
	return lambda_write(headers, &f, sizeof(f));
}
