/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	asm volatile("call 6" ::: "r0", "r1", "r2", "r3", "r4", "r5"); /* here */
	sink = k;
}
