/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

#include <stdlib.h>

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	void *p = malloc(8 * k);

	free(p);
	free(p);
	for (int i = 0; i < 100; i++) {
		volatile char *q = malloc(8);

		if (q)
			*q = 1;
	}
}
