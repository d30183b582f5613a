/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	long (*helper)(uint64_t) = (void *)(uintptr_t)(4 * k);

	sink = helper(k);
}
