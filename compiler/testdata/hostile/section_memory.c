/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static volatile uint8_t mine[64] __attribute__((section(".bss..memory")));

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	mine[64 * k] = 1;
}
