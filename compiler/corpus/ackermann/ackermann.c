/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ackermann's function, whose recursion is nested. Request: m and n in one byte each, up to 2 and 9. Reply: its value. */
#include <lambda.h>

static uint32_t ack(uint32_t m, uint32_t n)
{
	if (!m)
		return n + 1;
	return ack(m - 1, n ? ack(m, n - 1) : 1);
}

int ackermann(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[2];
	uint32_t a;

	(void)match_data;
	if (lambda_read(headers, in, 2) != 2 || in[0] > 2 || in[1] > 9)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	a = ack(in[0], in[1]);
	return lambda_write(headers, &a, sizeof(a));
}
