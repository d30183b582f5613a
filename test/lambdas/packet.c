// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A fixture in message mode packet: the method says what to do. FIXTURE_REVISION tells builds apart. */
#include "lambda.h"

#include <time.h>

#ifndef FIXTURE_REVISION
#define FIXTURE_REVISION 1
#endif

enum { ECHO, TEXT, DROP, FAULT, FAIL, COUNT, CRASH, HANG, REVISION, PREFIX, TOO_LONG, TOIL, SMASH = 13, DIVIDE };

#ifdef FIXTURE_WIDER
LAMBDA_KEPT uint64_t counter;
#else
LAMBDA_KEPT uint32_t counter;
#endif
static uint8_t text[5000 + LAMBDA_WINDOW];

static void fill(void)
{
	for (int i = 0; i < 5000; i++)
		text[i] = (uint8_t)(i * 7 + FIXTURE_REVISION);
}

/* Works for so many hundredths of a second on a CPU. */
static void toil(uint8_t hundredths)
{
	struct timespec began, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - began.tv_sec) * 1000000000LL + now.tv_nsec - began.tv_nsec < hundredths * 10000000LL);
}

/* Writes over the stack that it was called on: the frames of its callers, or all of it and what is kept at its end. */
static __attribute__((noinline)) int smash(size_t far)
{
	volatile uint8_t *here = __builtin_frame_address(0);

	for (size_t i = 0; i < far; i++)
		here[i] = 0xff;
	return RETURN_DROP;
}

int packet(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *p = payload(headers, 0, 4);
	volatile uint32_t *nowhere = NULL;
	volatile uint32_t forever = 1, zero = 0;

	switch (match_data->method) {
	case ECHO:
		return lambda_reply(headers, 0, match_data->payload_len);
	case TEXT:
		fill();
		return lambda_reply_from(headers, match_data, text, 0, 5000);
	case DROP:
		return RETURN_DROP;
	case FAULT:
		return RETURN_FAULT;
	case FAIL:
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	case COUNT:
		if (!p)
			return RETURN_FAULT;
		*(uint32_t *)p = (uint32_t)++counter;
		return lambda_reply(headers, 0, 4);
	case SMASH:
		return smash(match_data->payload_len == 1 ? 4096 : 64 << 20);
	case CRASH:
		return (int)*nowhere;
	case DIVIDE:
		return (int)(match_data->payload_len / zero);
	case HANG:
		counter++;
		while (forever)
			;
		return RETURN_DROP;
	case REVISION:
		if (!p)
			return RETURN_FAULT;
		*p = FIXTURE_REVISION;
		return lambda_reply(headers, 0, 1);
	case PREFIX:
		p = payload(headers, -4, 4);
		if (!p)
			return RETURN_FAULT;
		p[0] = 'p';
		p[1] = 'r';
		p[2] = 'e';
		p[3] = ':';
		return lambda_reply(headers, -4, match_data->payload_len + 4);
	case TOO_LONG:
		return lambda_reply(headers, 0, 3000);
	case TOIL:
		if (!p)
			return RETURN_FAULT;
		toil(*p);
		return lambda_reply(headers, 0, 0);
	}
	return RETURN_KEEP;
}
