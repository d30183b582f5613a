/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

__attribute__((naked, used)) static uint64_t bare(uint64_t x) /* here */
{
	asm volatile("r0 = r10\n\texit");
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = bare(k);
}
