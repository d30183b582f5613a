/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text in payloads: tokens, numbers, moves. Offsets are as in payload(). */
#ifndef LAMBDA_TEXT_H
#define LAMBDA_TEXT_H

#include "lambda.h"

#define LAMBDA_TOKEN_MAX 256

/* The number of bytes from off on, at most LAMBDA_TOKEN_MAX, that are neither white space nor control characters. */
static __always_inline uint32_t lambda_token(EXTRACTED_HEADERS_T *headers, int32_t off)
{
	uint32_t n;

	for (n = 0; n < LAMBDA_TOKEN_MAX; n++) {
		const uint8_t *p = payload(headers, off + n, 1);

		if (!p || *p <= ' ' || *p == 127)
			break;
	}
	return lambda_forget(headers, n);
}

/* A hash of len bytes at offset off, at most LAMBDA_TOKEN_MAX: a key for lambda_call_key() (FNV-1a). */
static __always_inline uint64_t lambda_hash(EXTRACTED_HEADERS_T *headers, int32_t off, uint32_t len)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	len = lambda_forget(headers, len); /* else the verifier distinguishes a value of len for each round */
	for (uint32_t n = 0; n < LAMBDA_TOKEN_MAX && n < len; n++) {
		const uint8_t *p = payload(headers, off + n, 1);

		if (!p)
			break;
		hash = (hash ^ *p) * 0x100000001b3ULL;
	}
	return (uint64_t)lambda_forget(headers, hash >> 32) << 32 | lambda_forget(headers, hash);
}

/* Reads a decimal number of at most 9 digits; returns how many there were. */
static __always_inline uint32_t lambda_number(EXTRACTED_HEADERS_T *headers, int32_t off, uint32_t *value)
{
	uint32_t n, v = 0;

	for (n = 0; n < 9; n++) {
		const uint8_t *p = payload(headers, off + n, 1);

		if (!p || *p < '0' || *p > '9')
			break;
		v = v * 10 + (*p - '0');
	}
	*value = lambda_forget(headers, v);
	return lambda_forget(headers, n);
}

/* Writes a decimal number that ends before offset end; returns the offset where it begins. */
static __always_inline int32_t lambda_put_number(EXTRACTED_HEADERS_T *headers, int32_t end, uint32_t value)
{
	for (int i = 0; i < 10; i++) {
		uint8_t *p = payload(headers, --end, 1);

		if (p)
			*p = '0' + value % 10;
		value /= 10;
		if (!value)
			break;
	}
	return (int32_t)lambda_forget(headers, end);
}

/* Writes a short constant text at offset off; 0, or -1 where it does not fit. */
#define lambda_put_text(headers, off, text) \
	({ \
		uint8_t *_p = payload(headers, off, sizeof(text) - 1); \
		if (_p) \
			__builtin_memcpy(_p, text, sizeof(text) - 1); \
		_p ? 0 : -1; \
	})

/* Whether bytes are the same; their number is a constant. __builtin_memcmp() would call a C library, which the NIC does not have. */
static __always_inline int lambda_same(const uint8_t *a, const uint8_t *b, uint32_t len)
{
	uint32_t differ = 0, i = 0;

	for (; i + 4 <= len; i += 4)
		differ |= *(const uint32_t *)(a + i) ^ *(const uint32_t *)(b + i);
	for (; i < len; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

/* True if the payload holds a short constant text at offset off. */
#define lambda_has_text(headers, off, text) \
	({ \
		const uint8_t *_p = payload(headers, off, sizeof(text) - 1); \
		_p ? lambda_same(_p, (const uint8_t *)(text), sizeof(text) - 1) : 0; \
	})

#endif
