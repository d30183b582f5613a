/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static volatile uint32_t table[8];
static volatile uint32_t other[8];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t distance = (uintptr_t)other - (uintptr_t)table;

	*(volatile uint32_t *)((uintptr_t)table + distance * k) = 1;
}
