/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static __attribute__((noinline)) volatile uint32_t *escape(uint32_t k)
{
	volatile uint32_t local[4] = { k };
	volatile uint32_t *volatile p = local;

	return p;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile uint32_t *p = escape(k);

	*p = 1;
	sink = *p;
}
