/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

void *__lambda_resolve(const void *p, uint32_t len, uint32_t max)
{
	return (void *)p;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = lambda_read(request, (void *)(uintptr_t)k, 1);
}
