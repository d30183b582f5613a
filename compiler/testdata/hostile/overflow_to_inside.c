/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static volatile uint32_t table[8];
static volatile uint32_t other[8];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	/* 8 * 2^61 wraps to 0 */
	((volatile uint64_t *)table)[k * 0x2000000000000000UL] = 1;
}
