/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

#include <stdlib.h>

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile char *p = malloc(16);

	for (uint32_t i = 0; p && i < 1u << 20; i++)
		p[i * k] = 0x7f;
	free((void *)p);
	p = malloc(16 * k);
	if (p)
		*p = 1;
}
