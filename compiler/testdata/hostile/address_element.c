/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint32_t zero = 0;

	sink = (uintptr_t)bpf_map_lookup_elem(&ln_requests, &zero) + k; /* here */
}
