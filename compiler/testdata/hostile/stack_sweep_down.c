/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile uint8_t local[32];

	for (int i = 0; i > -(1 << 20); i--)
		local[i * (int)k] = 0xff;
}
