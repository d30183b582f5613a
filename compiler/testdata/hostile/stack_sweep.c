/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile uint8_t local[32];

	for (uint32_t i = 0; i < 1u << 20; i++)
		local[i * k] = 0xff;
}
