// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A fixture that encrypts (method 0) and decrypts (method 1): the payload is a key, a nonce, a byte with the length of what is
 * authenticated only, that, and the text. Method 2 gives the Poly1305 of what stands behind a key of its own.
 */
#include <aead.h>

#define HEAD (AEAD_KEY + AEAD_NONCE + 1)

static int sum(EXTRACTED_HEADERS_T *headers, uint8_t *in, uint32_t len)
{
	struct aead_poly poly;
	uint32_t key[8], tag[4];

	if (len < AEAD_KEY)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	memcpy(key, in, sizeof(key));
	aead_poly_begin(&poly, key);
	aead_poly_bytes(&poly, in + AEAD_KEY, len - AEAD_KEY);
	aead_poly_end(&poly, key, tag);
	return lambda_write(headers, tag, sizeof(tag));
}

int aead(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[LAMBDA_WINDOW + AEAD_TAG], *key = in, *nonce = in + AEAD_KEY, *ad = in + HEAD, *text;
	uint32_t ad_len, len = lambda_read(headers, in, LAMBDA_WINDOW);

	if (match_data->method == 2)
		return sum(headers, in, len);
	if (len < HEAD || len - HEAD < in[HEAD - 1])
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	ad_len = in[HEAD - 1];
	text = ad + ad_len;
	len -= HEAD + ad_len;
	if (match_data->method == 0) {
		aead_seal(key, nonce, ad, ad_len, text, len);
		return lambda_write(headers, text, len + AEAD_TAG);
	}
	if (len < AEAD_TAG)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	len -= AEAD_TAG;
	if (aead_open(key, nonce, ad, ad_len, text, len))
		return lambda_fail(headers, LN_STATUS_FAILED);
	return lambda_write(headers, text, len);
}
