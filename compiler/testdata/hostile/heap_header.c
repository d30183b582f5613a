/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

#include <stdlib.h>

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t *p = malloc(24);

	if (!p)
		return;
	p[-1] = ~0UL * k; /* its size */
	free(p);
	p = malloc(24);
	if (p)
		*p = 1;
}
