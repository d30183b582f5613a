/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

__attribute__((section(".struct_ops"), used)) static uint64_t ops[4] = { 1 }; /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = ops[k & 3];
}
