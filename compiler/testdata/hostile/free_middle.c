/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

#include <stdlib.h>

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	char *p = malloc(100);

	free(p + 17 * k);
	sink = malloc(100) == p;
}
