/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

/* A pointer with two bytes of the attacker's. */
static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t torn;

	asm volatile("*(u64 *)(r10 - 504) = %[ctx]\n"
		     "*(u16 *)(r10 - 504) = %[k]\n"
		     "%[torn] = *(u64 *)(r10 - 504)"
		     : [torn] "=&r"(torn)
		     : [ctx] "r"(request->ctx), [k] "r"((uint64_t)k)
		     : "memory");
	sink = torn; /* here */
}
