/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

/* Each answer halves the range of the packet's possible addresses. */
static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint8_t *p = payload(request, 0, 1);

	if (p && (uintptr_t)p > (uintptr_t)k << 40) /* here */
		sink = 1;
}
