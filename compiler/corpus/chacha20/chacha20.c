/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ChaCha20 (RFC 8439). Request: a 32-byte key, the 32-bit counter, a 12-byte nonce, a text. Reply: the text enciphered. */
#include <lambda.h>
#include <string.h>

#define HEAD 48

static uint32_t rotate(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

static void quarter(uint32_t *s, int a, int b, int c, int d)
{
	s[a] += s[b];
	s[d] = rotate(s[d] ^ s[a], 16);
	s[c] += s[d];
	s[b] = rotate(s[b] ^ s[c], 12);
	s[a] += s[b];
	s[d] = rotate(s[d] ^ s[a], 8);
	s[c] += s[d];
	s[b] = rotate(s[b] ^ s[c], 7);
}

static void block(const uint32_t *in, uint32_t *out)
{
	memcpy(out, in, 64);
	for (int i = 0; i < 10; i++) {
		for (int k = 0; k < 4; k++)
			quarter(out, k, k + 4, k + 8, k + 12);
		for (int k = 0; k < 4; k++)
			quarter(out, k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4);
	}
	for (int i = 0; i < 16; i++)
		out[i] += in[i];
}

int chacha20(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400];
	uint32_t n = lambda_read(headers, in, sizeof(in));
	uint32_t state[16] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 }, stream[16];

	(void)match_data;
	if (n < HEAD)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	memcpy(state + 4, in, HEAD);
	for (uint32_t i = 0; i < n - HEAD; i++) {
		if (i % 64 == 0) {
			block(state, stream);
			state[12]++;
		}
		in[HEAD + i] ^= stream[i % 64 / 4] >> 8 * (i % 4);
	}
	return lambda_write(headers, in + HEAD, n - HEAD);
}
