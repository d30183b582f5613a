/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static uint64_t table[1];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	long (*helper)(void *, uint32_t, const void *) = (void *)4;

	sink = helper(&table, 8, (void *)0xffffffff81000000UL) + k; /* here */
}
