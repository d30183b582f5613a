/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	if (k & 1)
		goto second;
first:
	sink++;
	if (k == 77)
		return;
second:
	sink += 2;
	goto first;
}
