/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = k;
#if __has_include("/etc/passwd")
	*(volatile char *)(uintptr_t)(k - k) = 1;
#endif
}
