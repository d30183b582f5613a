/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static uint8_t small[4];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = lambda_read(request, small + 4096 * k, 1);
}
