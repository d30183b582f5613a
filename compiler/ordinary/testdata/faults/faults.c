/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fails in each way in which a run can fail: the request's first word is the api.Fault, its second how far to go. */
#include <lambda.h>
#include <stdlib.h>

static uint32_t table[16], rounds;

static uint64_t deep(uint64_t left)
{
	volatile uint64_t here = left;

	return left ? here + deep(left - 1) * 3 : 1;
}

static uint64_t fail(uint32_t fault, uint32_t far)
{
	uint64_t *word;

	switch (fault) {
	case LN_FAULT_OWN:
		abort();
	case LN_FAULT_TIME:
		for (;;)
			(*(volatile uint32_t *)&rounds)++;
	case LN_FAULT_BOUNDS:
		return *(volatile uint32_t *)&table[far];
	case LN_FAULT_RECURSION:
		return deep(far);
	case LN_FAULT_MEMORY:
		word = malloc(far);
		*(volatile uint64_t *)word = far;
		return *(volatile uint64_t *)word;
	}
	return far;
}

int faults(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t in[2];
	uint64_t out;

	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return RETURN_FAULT;
	out = fail(in[0], in[1]);
	return lambda_write(headers, &out, sizeof(out));
}
