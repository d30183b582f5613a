/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#define VERDICT 4
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = k;
}
