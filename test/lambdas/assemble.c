// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A fixture in message mode assemble: answers the message reversed, in place. Method 1 answers how often it has run, method 2 does
 * so after a while (target process only), and method 3 how many are at that. Method 4 divides by zero.
 */
#include "lambda.h"

#ifndef __bpf__
#include <time.h>
#endif

static uint32_t runs;
static uint32_t waiting;
static volatile int zero;

static void wait(void)
{
#ifndef __bpf__
	static const struct timespec while_ = { .tv_nsec = 200000000 };

	__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
	nanosleep(&while_, NULL);
	__atomic_sub_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
#endif
}

int assemble(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t n = match_data->payload_len;
	uint32_t count = __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED);
	uint8_t *a, *b, t;

	if (match_data->method == 4)
		return (int)n / zero;
	if (match_data->method) {
		a = payload(headers, 0, 4);
		if (!a)
			return RETURN_FAULT;
		if (match_data->method == 2)
			wait();
		*(uint32_t *)a = match_data->method == 3 ? waiting : count;
		return lambda_reply(headers, 0, 4);
	}
	for (uint32_t i = 0; i < n / 2; i++) {
		a = payload(headers, (int32_t)i, 1);
		b = payload(headers, (int32_t)(n - 1 - i), 1);
		if (!a || !b)
			return RETURN_FAULT;
		t = *a;
		*a = *b;
		*b = t;
	}
	return lambda_reply(headers, 0, n);
}
