/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Binary search. Request: how many sorted 32-bit integers follow, those, then as many keys as there are. Reply: for each key
 * the index of the first integer that is not less.
 */
#include <lambda.h>

#define MAX 350

static int lower_bound(const int32_t *a, int n, int32_t key)
{
	int low = 0, high = n;

	while (low < high) {
		int middle = low + (high - low) / 2;

		if (a[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int binary_search(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	int32_t in[MAX], out[MAX];
	int words = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]);
	int n = words ? in[0] : 0;
	int keys = words - 1 - n;

	(void)match_data;
	if (n < 0 || keys < 0)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int i = 0; i < keys; i++)
		out[i] = lower_bound(in + 1, n, in[1 + n + i]);
	return lambda_write(headers, out, keys * sizeof(out[0]));
}
