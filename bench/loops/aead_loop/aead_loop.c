/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Encrypts 1 KiB of zeros under a key and a nonce of zeros, and answers with the tag. */
#include <aead.h>

#define SIZE 1024

enum { NOTHING, SEAL };

int aead_loop(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t key[AEAD_KEY], nonce[AEAD_NONCE], text[SIZE + AEAD_TAG];

	memset(key, 0, sizeof(key));
	memset(nonce, 0, sizeof(nonce));
	memset(text, 0, sizeof(text));
	if (match_data->method == SEAL)
		aead_seal(key, nonce, nonce, 0, text, SIZE);
	return lambda_write(headers, text + SIZE, AEAD_TAG);
}
