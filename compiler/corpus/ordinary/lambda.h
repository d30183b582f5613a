/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An ordinary replacement of what the programs use of the SDK: here they run without any of our code. */
#ifndef LAMBDA_H
#define LAMBDA_H

#include <stdint.h>
#include <string.h>

typedef struct {
	uint8_t payload[1 << 20];
	uint32_t payload_len, out_len;
	uint8_t out[1 << 20];
} EXTRACTED_HEADERS_T;

typedef struct {
	uint32_t method;
} MATCH_DATA_T;

enum { RETURN_FORWARD = 1, RETURN_FAULT = 4 };
enum { LN_STATUS_BAD_REQUEST = 1 };

static inline uint32_t lambda_read(EXTRACTED_HEADERS_T *headers, void *to, uint32_t max)
{
	uint32_t n = headers->payload_len < max ? headers->payload_len : max;

	memcpy(to, headers->payload, n);
	return n;
}

static inline int lambda_write(EXTRACTED_HEADERS_T *headers, const void *from, uint32_t len)
{
	if (len > sizeof(headers->out))
		return RETURN_FAULT;
	memcpy(headers->out, from, len);
	headers->out_len = len;
	return RETURN_FORWARD;
}

static inline int lambda_fail(EXTRACTED_HEADERS_T *headers, uint32_t status)
{
	(void)headers;
	return -(int)status;
}

#endif
