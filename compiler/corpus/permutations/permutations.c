/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Permutations in lexicographic order. Request: letters and, in the last byte, how many steps to go. Reply: the letters after them. */
#include <lambda.h>

static void swap(char *a, char *b)
{
	char t = *a;

	*a = *b;
	*b = t;
}

static void reverse(char *first, char *end)
{
	while (first < end)
		swap(first++, --end);
}

static void next(char *a, int n)
{
	int i = n - 2, j = n - 1;

	while (i >= 0 && a[i] >= a[i + 1])
		i--;
	if (i >= 0) {
		while (a[j] <= a[i])
			j--;
		swap(&a[i], &a[j]);
	}
	reverse(a + i + 1, a + n);
}

int permutations(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[64];
	int n = lambda_read(headers, in, sizeof(in)) - 1;

	(void)match_data;
	if (n < 1)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int steps = (uint8_t)in[n]; steps > 0; steps--)
		next(in, n);
	return lambda_write(headers, in, n);
}
