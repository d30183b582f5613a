/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile struct {
		char c[40];
		uint32_t n;
	} *p = (void *)(uintptr_t)(k - 1);

	p->n = 1;
}
