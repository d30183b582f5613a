/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static uint64_t counter;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	for (;;)
		__sync_fetch_and_add(&counter, k);
}
