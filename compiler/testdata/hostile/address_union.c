/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

union both {
	uint8_t *pointer;
	uint64_t number;
};

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	union both both = { .pointer = payload(request, 0, 1) };

	if (both.pointer)
		sink = both.number * k; /* here */
}
