/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

#include <string.h>

static char to[4096], from[4096];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	for (;;)
		memcpy(to, from, sizeof(to) - k);
}
