/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	asm volatile goto("l_%=: .byte 0xe5; .byte 0; .short 0; .long 0" :: ::out); /* here */
out:
	sink = k;
}
