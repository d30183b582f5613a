/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	for (uint32_t i = 0; i < 100000 * k; i++)
		for (uint32_t j = 0; j < i; j++)
			sink += i ^ j;
}
