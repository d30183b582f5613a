/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static uint64_t told;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	__sync_fetch_and_add(&told, (uintptr_t)request->ctx + k); /* here */
}
