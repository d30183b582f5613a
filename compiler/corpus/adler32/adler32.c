/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Adler-32 (RFC 1950). Reply: the sum of the request. */
#include <lambda.h>

#define MODULUS 65521

static uint32_t sum(const uint8_t *p, uint32_t n)
{
	uint32_t a = 1, b = 0;

	while (n--) {
		a = (a + *p++) % MODULUS;
		b = (b + a) % MODULUS;
	}
	return b << 16 | a;
}

int adler32(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400];
	uint32_t n = lambda_read(headers, in, sizeof(in)), s = sum(in, n);

	(void)match_data;
	return lambda_write(headers, &s, sizeof(s));
}
