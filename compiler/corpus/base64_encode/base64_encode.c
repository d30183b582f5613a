/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Base64 (RFC 4648), with padding. Reply: the request encoded. */
#include <lambda.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_encode(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1002];
	char out[1340], *to = out;
	uint32_t n = lambda_read(headers, in, sizeof(in));

	(void)match_data;
	for (uint32_t i = 0; i < n; i += 3) {
		uint32_t left = n - i;
		uint32_t three = in[i] << 16 | (left > 1 ? in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);

		*to++ = digits[three >> 18];
		*to++ = digits[three >> 12 & 63];
		*to++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[three & 63] : '=';
	}
	return lambda_write(headers, out, to - out);
}
