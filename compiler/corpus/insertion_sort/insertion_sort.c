/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Insertion sort. Request: 32-bit signed integers. Reply: the same in ascending order. */
#include <lambda.h>

#define MAX 350

static void sort(int32_t *a, int n)
{
	for (int i = 1; i < n; i++) {
		int32_t x = a[i];
		int j = i - 1;

		while (j >= 0 && a[j] > x) {
			a[j + 1] = a[j];
			j--;
		}
		a[j + 1] = x;
	}
}

int insertion_sort(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	int32_t a[MAX];
	int n = lambda_read(headers, a, sizeof(a)) / sizeof(a[0]);

	(void)match_data;
	sort(a, n);
	return lambda_write(headers, a, n * sizeof(a[0]));
}
