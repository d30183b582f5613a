/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library's qsort and bsearch, which call a function that they are given. Request: 32-bit integers. Reply: those sorted, then for
 * each number of the request its place among them.
 */
#include <lambda.h>
#include <stdlib.h>

#define MAX 100

static int compare(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

int library_sort(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	int32_t in[MAX], out[2 * MAX];
	int n = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]);

	(void)match_data;
	for (int i = 0; i < n; i++)
		out[i] = in[i];
	qsort(out, n, sizeof(out[0]), compare);
	for (int i = 0; i < n; i++) {
		const int32_t *found = bsearch(&in[i], out, n, sizeof(out[0]), compare);

		out[n + i] = found ? *found : -1;
	}
	return lambda_write(headers, out, 2 * n * sizeof(out[0]));
}
