/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint32_t key = k;
	uint32_t *record = bpf_map_lookup_elem(&ln_requests, &key);

	if (record)
		*record = ~0u;
}
