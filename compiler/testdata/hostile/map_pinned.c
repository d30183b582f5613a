/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, uint32_t);
	__type(value, uint32_t);
} ln_slots SEC(".maps");

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint32_t key = k;

	sink = bpf_map_delete_elem(&ln_slots, &key); /* here */
}
