/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static volatile uint8_t large[2u << 30];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	large[k] = 1;
}
