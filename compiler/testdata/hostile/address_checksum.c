/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint32_t word = k;

	sink = bpf_csum_diff(NULL, 0, &word, sizeof(word), (uintptr_t)request->ctx); /* here */
}
