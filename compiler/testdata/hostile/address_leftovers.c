/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

/* What the kernel had on the stack before. */
static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t left;

	asm volatile("%0 = *(u64 *)(r10 - 504)" : "=r"(left));
	sink = left + k; /* here */
}
