/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

char mine[8] __attribute__((section(".BTF.ext"))) = "nonsens"; /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = mine[k & 7];
}
