/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	/* all that any pointer can reach */
	for (uint64_t at = 64 * k; at < 1u << 22; at += 8)
		*(volatile uint64_t *)at = ~0UL;
}
