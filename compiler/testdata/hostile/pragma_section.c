/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

#pragma clang section bss = ".bss..keep"
static volatile uint8_t mine[8];
#pragma clang section bss = ""

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	mine[k * 8] = 1;
}
