/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static uint32_t down(uint32_t n, volatile uint32_t *above)
{
	volatile uint32_t local[4] = { n };

	if (above)
		above[n * 50] = n;
	return n > 100 ? local[0] : down(n + 1, local) + local[1];
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = down(k, NULL);
}
