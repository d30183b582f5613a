/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

extern const uint64_t jiffies __attribute__((section(".ksyms"))); /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = jiffies + k;
}
