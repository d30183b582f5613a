/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static __attribute__((noinline)) void down(uint32_t n)
{
	sink += n;
	down(n + 1);
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	down(k);
}
