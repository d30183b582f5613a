/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The 0/1 knapsack by dynamic programming. Request: the capacity, up to 500, in 16 bits, then items: weight and value, 16 bits each.
 * Reply: the greatest value, 32 bits.
 */
#include <lambda.h>

#define ITEMS 60
#define CAPACITY 500

int knapsack(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint16_t in[1 + 2 * ITEMS];
	uint32_t best[CAPACITY + 1] = { 0 };
	int words = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]), capacity = words ? in[0] : 0;

	(void)match_data;
	if (!words || capacity > CAPACITY)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int i = 1; i + 1 < words; i += 2)
		for (int room = capacity; room >= in[i]; room--) {
			uint32_t with = best[room - in[i]] + in[i + 1];

			if (with > best[room])
				best[room] = with;
		}
	return lambda_write(headers, &best[capacity], sizeof(best[0]));
}
