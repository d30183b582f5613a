/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static long again(uint32_t i, void *context)
{
	return 0;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	bpf_loop(1u << 23, again, NULL, 0); /* here */
	sink = k;
}
