/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static volatile struct {
	uint32_t n;
	uint8_t bytes[8];
	uint32_t last;
} one;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	one.bytes[k * 100] = 1;
}
