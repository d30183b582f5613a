/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Heapsort. Request: 64-bit unsigned integers. Reply: the same in ascending order. */
#include <lambda.h>

#define MAX 175

static void sift(uint64_t *a, int root, int n)
{
	for (;;) {
		int child = 2 * root + 1;

		if (child >= n)
			return;
		if (child + 1 < n && a[child] < a[child + 1])
			child++;
		if (a[root] >= a[child])
			return;
		uint64_t t = a[root];

		a[root] = a[child];
		a[child] = t;
		root = child;
	}
}

int heap_sort(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint64_t a[MAX];
	int n = lambda_read(headers, a, sizeof(a)) / sizeof(a[0]);

	(void)match_data;
	for (int i = n / 2 - 1; i >= 0; i--)
		sift(a, i, n);
	for (int end = n - 1; end > 0; end--) {
		uint64_t t = a[0];

		a[0] = a[end];
		a[end] = t;
		sift(a, 0, end);
	}
	return lambda_write(headers, a, n * sizeof(a[0]));
}
