/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static __thread volatile uint32_t own; /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	own = k;
}
