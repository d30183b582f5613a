/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Quicksort, recursive, after Hoare. Request: 32-bit signed integers. Reply: the same in ascending order. */
#include <lambda.h>

#define MAX 350

static void swap(int32_t *a, int32_t *b)
{
	int32_t t = *a;

	*a = *b;
	*b = t;
}

static void sort(int32_t *a, int low, int high)
{
	if (low >= high)
		return;
	int32_t pivot = a[low + (high - low) / 2];
	int i = low - 1, j = high + 1;

	for (;;) {
		do
			i++;
		while (a[i] < pivot);
		do
			j--;
		while (a[j] > pivot);
		if (i >= j)
			break;
		swap(&a[i], &a[j]);
	}
	sort(a, low, j);
	sort(a, j + 1, high);
}

int quick_sort(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	int32_t a[MAX];
	int n = lambda_read(headers, a, sizeof(a)) / sizeof(a[0]);

	(void)match_data;
	sort(a, 0, n - 1);
	return lambda_write(headers, a, n * sizeof(a[0]));
}
