/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	/* 64 less, and more than the guard's 64-bit sum can hold */
	*(volatile uint8_t *)(63UL + sink) = 1;
}
