/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

struct later {
	uint32_t n;
};
LAMBDA_MIGRATED struct later later;
LAMBDA_MIGRATE(struct later, old)
{
	struct ln_request *record;
	uint32_t zero = 0;

	record = bpf_map_lookup_elem(&ln_requests, &zero); /* here */
	if (record)
		record->out_len = 1;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = k;
}
