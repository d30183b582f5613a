/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t number = k;

	asm volatile("%0 = %1" : "=r"(number) : "r"(request->ctx));
	sink = number; /* here */
}
