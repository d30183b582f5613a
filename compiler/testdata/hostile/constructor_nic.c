/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

__attribute__((constructor, used)) static void early(void) /* here */
{
	sink = 1;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
}
