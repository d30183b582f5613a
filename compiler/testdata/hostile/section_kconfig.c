/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

extern int CONFIG_HZ __attribute__((section(".kconfig"), weak)); /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = CONFIG_HZ + k;
}
