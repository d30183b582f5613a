/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Levenshtein's distance, by rows. Request: a text, a NUL, another text. Reply: the distance. */
#include <lambda.h>

#define MAX 200

static int least(int a, int b, int c)
{
	int ab = a < b ? a : b;

	return ab < c ? ab : c;
}

static int distance(const char *a, int n, const char *b, int m)
{
	int row[MAX + 1];

	for (int j = 0; j <= m; j++)
		row[j] = j;
	for (int i = 1; i <= n; i++) {
		int diagonal = row[0];

		row[0] = i;
		for (int j = 1; j <= m; j++) {
			int above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[m];
}

int levenshtein(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[MAX];
	int n = lambda_read(headers, in, sizeof(in)), split = 0;
	uint32_t d;

	(void)match_data;
	while (split < n && in[split])
		split++;
	if (split == n)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	d = distance(in, split, in + split + 1, n - split - 1);
	return lambda_write(headers, &d, sizeof(d));
}
