/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static volatile uint8_t bytes[16];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	/* one guard for both: its span must not wrap */
	uint64_t i = 0UL - 4 * k;

	bytes[i] = 1;
	bytes[i + 8] = 1;
}
