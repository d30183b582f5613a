/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>

static char *kept;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	if (!kept)
		kept = malloc(64);
	memset(kept, 0xff, 4096 * k);
}
