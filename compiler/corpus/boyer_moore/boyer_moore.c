/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Boyer and Moore's search in Horspool's form. Request: the pattern's length in one byte, the pattern, the text. Reply: the first place
 * where it stands, -1 for nowhere.
 */
#include <lambda.h>
#include <string.h>

static int search(const uint8_t *text, int n, const uint8_t *pattern, int m)
{
	int skip[256];

	for (int i = 0; i < 256; i++)
		skip[i] = m;
	for (int i = 0; i < m - 1; i++)
		skip[pattern[i]] = m - 1 - i;
	for (int at = 0; at + m <= n; at += skip[text[at + m - 1]])
		if (!memcmp(text + at, pattern, m))
			return at;
	return -1;
}

int boyer_moore(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400];
	int n = lambda_read(headers, in, sizeof(in)), m = n ? in[0] : 0;
	int32_t at;

	(void)match_data;
	if (!m || n < 1 + m)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	at = search(in + 1 + m, n - 1 - m, in + 1, m);
	return lambda_write(headers, &at, sizeof(at));
}
