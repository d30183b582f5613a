/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static int real(void)
{
	return 1;
}
static void *resolver(void)
{
	return (void *)real;
}
int chosen(void) __attribute__((ifunc("resolver"))); /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = chosen() + k;
}
