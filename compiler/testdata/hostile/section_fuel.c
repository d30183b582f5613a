/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

volatile uint64_t budget[2] __attribute__((section(".data.fuel"))) = { 1ULL << 62, 0 }; /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	for (;;)
		budget[0] = 1ULL << 62 | k;
}
