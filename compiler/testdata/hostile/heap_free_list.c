/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

#include <stdlib.h>

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t *p = malloc(24), *q;

	if (!p)
		return;
	free(p);
	*p = 0xffff888000000000UL * k; /* the next free one */
	q = malloc(24);
	q = malloc(24);
	if (q)
		*q = 1;
}
