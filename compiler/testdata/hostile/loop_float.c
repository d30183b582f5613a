/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile double x = k;

	while (x != 0.1)
		x = x * 3.9 * (1.0 - x / 100);
	sink = (uint32_t)x;
}
