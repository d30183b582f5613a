/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static int one(uint32_t k)
{
	return (int)k + 1;
}
static int two(uint32_t k)
{
	return (int)k + 2;
}
static int (*volatile ones[2])(uint32_t) = { one, two };
static int (*volatile *table)(uint32_t, uint32_t) = (void *)ones;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	table[k & 1](k, 1);
}
