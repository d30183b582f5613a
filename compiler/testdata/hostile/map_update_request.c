/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static uint32_t zero;
static struct ln_request ones;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	struct ln_request *record = bpf_map_lookup_elem(&ln_requests, &zero);

	if (record)
		bpf_map_update_elem(&ln_requests, &zero, &ones, k - 1);
}
