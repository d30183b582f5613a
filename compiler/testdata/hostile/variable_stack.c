/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile uint8_t local[k * 100000];

	local[k] = 1;
	sink = local[2];
}
