/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint8_t *p = payload(request, 0, 1);

	if (p && (uintptr_t)p >> k & 1) /* here */
		sink = 1;
}
