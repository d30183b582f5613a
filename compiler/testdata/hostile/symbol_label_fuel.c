/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static uint64_t mine[2] __asm__("lambda_fuel");

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	for (;;)
		mine[0] = 1ULL << 62 | k;
}
