/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Base64 (RFC 4648), strict. Reply: 'y' and the request decoded, or 'n' if it is not base64. */
#include <lambda.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Decodes four digits. Returns how many bytes they hold, or -1. */
static int group(const char *in, uint8_t *out)
{
	uint32_t three = 0;
	int pad = 0;

	for (int k = 0; k < 4; k++) {
		const char *d = in[k] ? strchr(digits, in[k]) : 0;

		if (in[k] == '=' && k >= 2)
			pad++;
		else if (!d || pad)
			return -1;
		three = three << 6 | (d ? d - digits : 0);
	}
	for (int k = 0; k < 3 - pad; k++)
		out[k] = three >> (16 - 8 * k);
	return 3 - pad;
}

static int decode(const char *in, uint32_t n, uint8_t *out)
{
	int at = 0;

	if (n % 4)
		return -1;
	for (uint32_t i = 0; i < n; i += 4) {
		int bytes = group(in + i, out + at);

		if (bytes < 0 || (bytes < 3 && i + 4 < n))
			return -1;
		at += bytes;
	}
	return at;
}

int base64_decode(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[1400];
	uint8_t out[1060];
	int n = decode(in, lambda_read(headers, in, sizeof(in)), out + 1);

	(void)match_data;
	out[0] = n < 0 ? 'n' : 'y';
	return lambda_write(headers, out, n < 0 ? 1 : 1 + n);
}
