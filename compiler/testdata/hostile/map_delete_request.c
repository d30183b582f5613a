/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint32_t key = k - 1;

	bpf_map_delete_elem(&ln_requests, &key);
}
