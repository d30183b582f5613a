/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile union {
		uint64_t n;
		volatile uint32_t *p;
	} u;

	u.n = 0xdeadbeef00UL * k;
	*u.p = 1;
}
