/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static const uint8_t mine[8] __attribute__((section(".rodata.mine")));

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	*(volatile uint8_t *)&mine[k] = 1; /* here */
}
