/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UTF-8 (RFC 3629). Reply: the code points of the request, 32 bits each; -1 ends them if it is not UTF-8. */
#include <lambda.h>

#define MAX 340

/* Decodes one code point. Returns how many bytes it took, or 0 if it is not well formed. */
static int decode(const uint8_t *p, int n, int32_t *point)
{
	static const int32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	int len = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
	int32_t c = len == 1 ? *p : *p & (0x7f >> len);

	if (!len || len > n)
		return 0;
	for (int i = 1; i < len; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*point = c;
	return len;
}

int utf8(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[MAX];
	int32_t out[MAX + 1];
	int n = lambda_read(headers, in, sizeof(in)), points = 0;

	(void)match_data;
	for (int i = 0; i < n;) {
		int len = decode(in + i, n - i, &out[points]);

		if (!len) {
			out[points++] = -1;
			break;
		}
		i += len;
		points++;
	}
	return lambda_write(headers, out, points * sizeof(out[0]));
}
