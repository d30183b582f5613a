/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

extern uint64_t served __attribute__((weak));

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = served + k; /* here */
}
