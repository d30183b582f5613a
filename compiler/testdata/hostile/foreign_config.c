/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

extern int LINUX_KERNEL_VERSION __attribute__((section(".kconfig"))); /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = LINUX_KERNEL_VERSION + k;
}
