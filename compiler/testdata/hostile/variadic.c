/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static __attribute__((noinline)) void sum(uint32_t n, ...)
{
	__builtin_va_list list;

	__builtin_va_start(list, n);
	while (n--)
		sink += __builtin_va_arg(list, int);
	__builtin_va_end(list);
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sum(k, 1, 2, 3); /* here */
}
