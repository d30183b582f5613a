/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 30);
	__type(key, uint32_t);
	__type(value, uint64_t);
} huge SEC(".maps");

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint32_t key = k;

	sink = !!bpf_map_lookup_elem(&huge, &key);
}
