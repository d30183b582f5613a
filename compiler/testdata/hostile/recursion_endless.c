/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static __attribute__((noinline)) uint32_t down(uint32_t n)
{
	return down(n + 1) * 3 + n;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = down(k);
}
