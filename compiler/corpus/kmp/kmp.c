/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Knuth, Morris and Pratt's search. Request: the pattern's length in one byte, the pattern, the text. Reply: every place where
 * it stands, 16 bits each, overlapping ones too.
 */
#include <lambda.h>

static void prepare(const uint8_t *pattern, int m, int *border)
{
	int k = 0;

	border[0] = 0;
	for (int i = 1; i < m; i++) {
		while (k > 0 && pattern[i] != pattern[k])
			k = border[k - 1];
		if (pattern[i] == pattern[k])
			k++;
		border[i] = k;
	}
}

static int search(const uint8_t *text, int n, const uint8_t *pattern, int m, uint16_t *found)
{
	int border[256], k = 0, count = 0;

	prepare(pattern, m, border);
	for (int i = 0; i < n; i++) {
		while (k > 0 && (k == m || text[i] != pattern[k]))
			k = border[k - 1];
		if (text[i] == pattern[k])
			k++;
		if (k == m)
			found[count++] = i + 1 - m;
	}
	return count;
}

int kmp(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[700];
	uint16_t found[700];
	int n = lambda_read(headers, in, sizeof(in)), m = n ? in[0] : 0;

	(void)match_data;
	if (!m || n < 1 + m)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	return lambda_write(headers, found, 2 * search(in + 1 + m, n - 1 - m, in + 1, m, found));
}
