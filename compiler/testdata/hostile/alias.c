/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

__attribute__((noinline)) int real(int x)
{
	return x + 1;
}
int other(int x) __attribute__((alias("real"))); /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = other(k);
}
