/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

#include <stdlib.h>

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile char *p = calloc(0x100000001UL * k, 0x100000000UL);

	p[8] = 1;
}
