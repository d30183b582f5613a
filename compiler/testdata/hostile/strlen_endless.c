/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

#include <string.h>

static char to[16];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	memset(to, 'x', sizeof(to) * k);
	sink = strlen(to);
}
