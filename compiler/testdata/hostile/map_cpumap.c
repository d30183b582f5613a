/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 4096);
	__uint(key_size, 4);
	__uint(value_size, 4);
} foreign SEC(".maps");

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint32_t key = k;

	sink = !!bpf_map_lookup_elem(&foreign, &key); /* here */
}
