/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

#include <string.h>

static char to[16], from[16];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	from[k] = (char)k;
	memcpy(to, from, (size_t)k << 32);
	sink = to[3];
}
