/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SDK's half for the host: a lambda is a shared library that lambda-host loads. The host hands over the same
 * ln_request record as the root program, and a buffer in place of the packet.
 */
#ifndef LAMBDA_HOST_H
#define LAMBDA_HOST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <string.h>
#include <time.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

struct lambda_headers {
	struct ln_request *req;
	uint8_t *base; /* the payload; at least LN_PREFIX bytes before it are free */
	uint8_t *start; /* of the memory that the lambda may touch */
	uint8_t *end;
	uint8_t *limit; /* how far lambda_put() may move it */
};

/* lambda-host calls it when lambda_migrate_old holds a copy of the running revision's migrated variable. */
#define LAMBDA_MIGRATE_ENTRY int lambda_host_migrate(EXTRACTED_HEADERS_T *headers)

static __always_inline uint8_t *payload(EXTRACTED_HEADERS_T *headers, int32_t off, uint32_t len)
{
	long low = headers->start - headers->base;
	long room = headers->end - headers->base;

	if (off < low || off > room || (long)len > room - off)
		return NULL;
	return headers->base + off;
}

static __always_inline uint64_t lambda_now(void)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static __always_inline uint32_t lambda_cpu(void)
{
	return (uint32_t)sched_getcpu() % LAMBDA_CPUS;
}

static __always_inline uint32_t lambda_forget(EXTRACTED_HEADERS_T *headers, uint32_t value)
{
	(void)headers;
	return value;
}

static __always_inline int lambda_move(EXTRACTED_HEADERS_T *headers, int32_t to, int32_t from, uint32_t len)
{
	uint8_t *out = payload(headers, to, 0), *in = payload(headers, from, 0);

	if (len > LAMBDA_MOVE_MAX || !in || !out || headers->end - in < (long)len || headers->end - out < (long)len)
		return -1;
	memmove(out, in, len);
	return 0;
}

static __always_inline uint8_t *lambda_put(EXTRACTED_HEADERS_T *headers, uint32_t off, uint32_t len)
{
	uint64_t need = (uint64_t)off + len;

	if (need > (uint64_t)(headers->limit - headers->base))
		return NULL;
	if (headers->base + need > headers->end) {
		memset(headers->end, 0, headers->base + need - headers->end);
		headers->end = headers->base + need;
	}
	return headers->base + off;
}

static __always_inline int lambda_copy_in(EXTRACTED_HEADERS_T *headers, uint8_t *array, uint32_t size, uint32_t at,
					  uint32_t len)
{
	if (size < LAMBDA_WINDOW || at > size - LAMBDA_WINDOW || len > LAMBDA_WINDOW ||
	    (len && !payload(headers, 0, len)))
		return -1;
	memcpy(array + at, headers->base, len);
	return 0;
}

static __always_inline uint32_t lambda_read(EXTRACTED_HEADERS_T *headers, void *to, uint32_t max)
{
	uint32_t n = headers->req->match.payload_len;

	if (n > max)
		n = max;
	memcpy(to, headers->base, n);
	return n;
}

#ifdef LAMBDA_ASSEMBLE
static __always_inline uint8_t *lambda_message(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	(void)match_data;
	return headers->base;
}

static __always_inline int lambda_write(EXTRACTED_HEADERS_T *headers, const void *from, uint32_t len)
{
	if (len > LAMBDA_MESSAGE_MAX)
		return RETURN_FAULT;
	memmove(headers->base, from, len);
	headers->req->out_off = 0;
	headers->req->out_len = len;
	headers->req->out_total = len;
	return RETURN_FORWARD;
}

/* In mode assemble, the reply goes out window by window after the run. */
static __always_inline int lambda_copy_out(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data, const uint8_t *array,
					   uint32_t size, uint32_t at, uint32_t len)
{
	(void)match_data;
	return at > size || len > size - at ? RETURN_FAULT : lambda_write(headers, array + at, len);
}
#else
static __always_inline int lambda_copy_out(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data, const uint8_t *array,
					   uint32_t size, uint32_t at, uint32_t len)
{
	uint32_t n;

	if (lambda_window(match_data, len, &n) || size < LAMBDA_WINDOW)
		return RETURN_FAULT;
	at += match_data->window;
	if (at > size - LAMBDA_WINDOW || n > LAMBDA_WINDOW || (n && !payload(headers, 0, n)))
		return RETURN_FAULT;
	memcpy(headers->base, array + at, n);
	headers->req->out_off = 0;
	headers->req->out_len = n;
	headers->req->out_total = len;
	return RETURN_FORWARD;
}

static __always_inline int lambda_place(EXTRACTED_HEADERS_T *headers, const void *from, uint32_t len)
{
	if (!len || len > LAMBDA_WINDOW || !lambda_put(headers, len - 1, 1))
		return -1;
	memmove(headers->base, from, len);
	return 0;
}

static __always_inline int lambda_write(EXTRACTED_HEADERS_T *headers, const void *from, uint32_t len)
{
	struct lambda_match *match = &headers->req->match;
	uint32_t n;

	if (lambda_window(match, len, &n) || n > LAMBDA_WINDOW || (n && !payload(headers, 0, n)))
		return RETURN_FAULT;
	memmove(headers->base, (const uint8_t *)from + match->window, n);
	headers->req->out_off = 0;
	headers->req->out_len = n;
	headers->req->out_total = len;
	return RETURN_FORWARD;
}
#endif

#endif
