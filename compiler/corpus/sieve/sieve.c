/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sieve of Eratosthenes. Request: two 32-bit numbers up to 4000. Reply: the primes from the first up to the second, 16 bits each. */
#include <lambda.h>
#include <string.h>

#define MAX 4000

int sieve(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	static uint8_t composite[MAX + 1];
	uint16_t out[600];
	uint32_t in[2], n = 0;

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != sizeof(in) || in[0] > MAX || in[1] > MAX)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	memset(composite, 0, sizeof(composite));
	for (uint32_t p = 2; p * p <= in[1]; p++)
		if (!composite[p])
			for (uint32_t k = p * p; k <= in[1]; k += p)
				composite[k] = 1;
	for (uint32_t p = in[0] < 2 ? 2 : in[0]; p <= in[1]; p++)
		if (!composite[p])
			out[n++] = p;
	return lambda_write(headers, out, n * sizeof(out[0]));
}
