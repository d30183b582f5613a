/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static volatile uint64_t mine[2] __asm__("lambda_memory");

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	mine[k * 8] = 1;
}
