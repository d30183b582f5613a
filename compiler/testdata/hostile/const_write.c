/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static const uint32_t fixed[4] = { 1, 2, 3, 4 };

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	*(volatile uint32_t *)&fixed[k] = 1; /* here */
}
