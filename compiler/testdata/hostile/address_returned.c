/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static __attribute__((noinline)) uint64_t same(void *p)
{
	asm volatile("" : "+r"(p));
	return (uintptr_t)p;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = same(request->ctx) + k; /* here */
}
