/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static volatile uint32_t table[8];
static volatile uint32_t other[8];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	int i = 0x7fffffff - 1 + (int)k;

	if (i + 2 < 8)
		table[i] = 1;
}
