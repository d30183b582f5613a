/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, uint32_t);
	__type(value, uint64_t);
} ln_dispatch SEC(".maps");

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint32_t key = k;
	uint64_t *word = bpf_map_lookup_elem(&ln_dispatch, &key);

	if (word)
		*word = ~0UL; /* its own, of the same name */
}
