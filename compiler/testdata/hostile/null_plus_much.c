/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile uint8_t *p = (void *)(uintptr_t)(k - 1);

	p[k << 30] = 1;
}
