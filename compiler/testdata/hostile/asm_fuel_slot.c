/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	for (;;) {
		sink += k;
		asm volatile("r1 = 0x7fffffff; *(u64 *)(r10 - 8) = r1; *(u64 *)(r10 - 16) = r1" ::: "r1"); /* here */
	}
}
