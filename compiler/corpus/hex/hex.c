/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hexadecimal, there and back. Request: 'e' and bytes, or 'd' and digits. Reply: the other form, or nothing for bad digits. */
#include <lambda.h>

static int value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int encode(const uint8_t *in, int n, char *out)
{
	for (int i = 0; i < n; i++) {
		out[2 * i] = "0123456789abcdef"[in[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[in[i] & 15];
	}
	return 2 * n;
}

static int decode(const char *in, int n, char *out)
{
	for (int i = 0; i < n / 2; i++) {
		int high = value(in[2 * i]), low = value(in[2 * i + 1]);

		if (high < 0 || low < 0)
			return 0;
		out[i] = high << 4 | low;
	}
	return n % 2 ? 0 : n / 2;
}

int hex(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[701], out[1400];
	int n = lambda_read(headers, in, sizeof(in));

	(void)match_data;
	if (!n)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	n = in[0] == 'e' ? encode((uint8_t *)in + 1, n - 1, out) : decode(in + 1, n - 1, out);
	return lambda_write(headers, out, n);
}
