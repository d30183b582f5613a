/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static uint32_t down(uint32_t n)
{
	volatile uint8_t local[200];

	local[n % 200] = 1;
	return n ? down(n - 1) + local[(n + 1) % 200] : 0;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = down(k << 20);
}
