/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static uint32_t tree(uint32_t n)
{
	return n < 2 ? 1 : tree(n - 1) + tree(n - 2);
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = tree(60 * k);
}
