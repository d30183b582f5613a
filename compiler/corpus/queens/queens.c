/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The N queens problem, by recursion. Request: N in one byte, up to 7. Reply: how many solutions there are. */
#include <lambda.h>

static uint32_t place(uint32_t n, uint32_t columns, uint32_t left, uint32_t right)
{
	uint32_t all = (1u << n) - 1, free = all & ~(columns | left | right), count = 0;

	if (columns == all)
		return 1;
	while (free) {
		uint32_t queen = free & -free;

		free ^= queen;
		count += place(n, columns | queen, (left | queen) << 1, (right | queen) >> 1);
	}
	return count;
}

int queens(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t n;
	uint32_t count;

	(void)match_data;
	if (lambda_read(headers, &n, 1) != 1 || n > 7)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	count = place(n, 0, 0, 0);
	return lambda_write(headers, &count, sizeof(count));
}
