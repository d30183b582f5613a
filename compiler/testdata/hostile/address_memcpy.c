/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"
#include <string.h>

static uint8_t told[16];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint8_t *p = payload(request, 0, 1);

	if (p)
		memcpy(told + (k & 7), &p, sizeof(p)); /* here */
	sink = told[k & 15];
}
