/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t map;

	asm volatile(".byte 0x18; .byte 0x11; .short 0; .long 3; .long 0; .long 0" : "=r"(map)); /* here */
	sink = map + k;
}
