/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The trusted code around an author's function, which the compiler includes behind it. LAMBDA_ENTRY names the function; LAMBDA_ASSEMBLE is
 * defined in message mode assemble, LAMBDA_CALLS if the spec has services. LAMBDA_IN_FLIGHT and LAMBDA_MESSAGE_MAX bound its messages,
 * LAMBDA_LIMITS_MEMORY its global variables.
 */
#ifndef LAMBDA_ENTRY_H
#define LAMBDA_ENTRY_H

#ifdef LAMBDA_NFP
#include "lambda_nfp_entry.h"
#elif defined(__bpf__)

#ifdef LAMBDA_ASSEMBLE
/* Copies n bytes of the packet, from skip bytes into its payload, to a place in a message. */
static __always_inline int lambda_take_bytes(EXTRACTED_HEADERS_T *headers, uint32_t skip, uint32_t record, uint32_t at,
					     uint32_t n)
{
	lambda_opaque(record);
	lambda_opaque(at);
	lambda_opaque(n);
	if (record >= LAMBDA_IN_FLIGHT || at > LAMBDA_MESSAGE_MAX || n > LAMBDA_WINDOW)
		return RETURN_FAULT;
	if (n && bpf_xdp_load_bytes(headers->ctx, headers->base + skip, &lambda_messages[record][at], n))
		return RETURN_FAULT;
	return RETURN_KEEP;
}

/* RDMA has packets of up to 4,096 bytes. */
#define LAMBDA_TAKE_STEP 1024
#define LAMBDA_TAKE_STEPS 4

/* Copies one packet of a message to its place. */
static __always_inline int lambda_take_packet(EXTRACTED_HEADERS_T *headers)
{
	struct lambda_match *match = &headers->req->match;
	uint32_t record = match->record, at = match->offset, n = match->payload_len;

	if (n <= LAMBDA_WINDOW)
		return lambda_take_bytes(headers, 0, record, at, n);
	for (uint32_t skip = 0; skip < LAMBDA_TAKE_STEPS * LAMBDA_TAKE_STEP; skip += LAMBDA_TAKE_STEP) {
		uint32_t part = n - skip < LAMBDA_TAKE_STEP ? n - skip : LAMBDA_TAKE_STEP;

		if (skip >= n)
			return RETURN_KEEP;
		if (lambda_take_bytes(headers, skip, record, at + skip, part) != RETURN_KEEP)
			return RETURN_FAULT;
	}
	return n > LAMBDA_TAKE_STEPS * LAMBDA_TAKE_STEP ? RETURN_FAULT : RETURN_KEEP;
}

/* Copies the window of the reply that the client asked for into the packet. */
static __always_inline int lambda_copy_window(EXTRACTED_HEADERS_T *headers)
{
	struct lambda_match *match = &headers->req->match;
	uint32_t total = headers->req->out_total, window = match->window, record = match->record;
	uint32_t n, at;

	lambda_opaque(record);
	if (record >= LAMBDA_IN_FLIGHT || window > total)
		return RETURN_FAULT;
	n = total - window;
	if (n > match->window_len)
		n = match->window_len;
	at = lambda_reply_at[record] + window;
	lambda_opaque(at);
	lambda_opaque(n);
	if (at > LAMBDA_MESSAGE_MAX || n > LAMBDA_WINDOW)
		return RETURN_FAULT;
	if (n && bpf_xdp_store_bytes(headers->ctx, headers->base, &lambda_messages[record][at], n))
		return RETURN_FAULT;
	headers->req->out_off = 0;
	headers->req->out_len = n;
	return RETURN_FORWARD;
}

static __always_inline int lambda_dispatch(EXTRACTED_HEADERS_T *headers)
{
	struct ln_request *req = headers->req;
	uint32_t record = req->match.record;
	int verdict;

	if (req->step == LN_STEP_COPY)
		return lambda_take_packet(headers);
	if (req->step == LN_STEP_PULL)
		return lambda_copy_window(headers);
	verdict = LAMBDA_ENTRY(headers, &req->match);
	lambda_opaque(record);
	if (verdict != RETURN_FORWARD || record >= LAMBDA_IN_FLIGHT)
		return verdict;
	if (req->out_off < 0 || req->out_len > LAMBDA_MESSAGE_MAX || req->out_off > LAMBDA_MESSAGE_MAX ||
	    req->out_off + req->out_len > LAMBDA_MESSAGE_MAX + LAMBDA_WINDOW)
		return RETURN_FAULT;
	lambda_reply_at[record] = req->out_off;
	req->out_total = req->out_len;
	return lambda_copy_window(headers);
}
#else
static __always_inline int lambda_dispatch(EXTRACTED_HEADERS_T *headers)
{
	return LAMBDA_ENTRY(headers, &headers->req->match);
}
#endif

/* The memory for all frames of recursion. The compiler reads the value, and removes the variable (compiler/passes/recursion.cpp). */
static const uint64_t lambda_frames __attribute__((used, section("lambda.frames"))) = LAMBDA_LIMITS_MEMORY / 4;

#ifdef LAMBDA_MEMBER
/* One of several lambdas in a program, which calls this function (compiler/link). */
int lambda_member(EXTRACTED_HEADERS_T *headers)
{
	return lambda_dispatch(headers);
}
#else
SEC("xdp.frags")
int lambda(struct xdp_md *ctx)
{
	EXTRACTED_HEADERS_T headers = { .ctx = ctx };
	uint32_t zero = 0;

	headers.req = bpf_map_lookup_elem(&ln_requests, &zero);
	if (!headers.req)
		return RETURN_FAULT;
	headers.base = headers.req->payload_off;
	lambda_opaque(headers.base);
	if (headers.base > 0xff)
		return RETURN_FAULT;
	return lambda_dispatch(&headers);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
#endif

#else /* the host */

#include "lambda_wide.h"

/* clang calls these for divisions of 128 bits, by the names in its own library: processes link only C's library. */
#define LAMBDA_WIDE_CALLED __attribute__((used, visibility("hidden")))

LAMBDA_WIDE_CALLED unsigned __int128 __udivti3(unsigned __int128 a, unsigned __int128 b)
{
	uint64_t low = lambda_u128_div_low(a >> 64, a, b >> 64, b);

	return (unsigned __int128)lambda_u128_div_high(a >> 64, b >> 64, b) << 64 | low;
}

LAMBDA_WIDE_CALLED unsigned __int128 __umodti3(unsigned __int128 a, unsigned __int128 b)
{
	return a - __udivti3(a, b) * b;
}

LAMBDA_WIDE_CALLED __int128 __divti3(__int128 a, __int128 b)
{
	unsigned __int128 quotient = __udivti3(a < 0 ? -a : a, b < 0 ? -b : b);

	return (a < 0) != (b < 0) ? -quotient : quotient;
}

LAMBDA_WIDE_CALLED __int128 __modti3(__int128 a, __int128 b)
{
	unsigned __int128 rest = __umodti3(a < 0 ? -a : a, b < 0 ? -b : b);

	return a < 0 ? -rest : rest;
}

/* What lambda-host looks up in the shared library. */
#ifdef LAMBDA_HEAP_H
int lambda_host_refused(void)
{
	return lambda_heap_refused();
}

/* Made on the first call of each thread. */
void *lambda_host_heap(size_t *size)
{
	*size = sizeof(struct lambda_heap);
	return lambda_heap_own();
}
#endif

int lambda_host_run(EXTRACTED_HEADERS_T *headers)
{
#ifdef LAMBDA_HEAP_H
	lambda_heap_begin();
#endif
	return LAMBDA_ENTRY(headers, &headers->req->match);
}

#endif
#endif
