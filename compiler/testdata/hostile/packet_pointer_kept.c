/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static uint8_t *volatile kept;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	kept = payload(request, 0, 1); /* here */
	sink = k;
}
