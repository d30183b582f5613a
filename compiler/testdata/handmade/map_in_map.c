/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: ArrayOfMaps */
#include "handmade.h"

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} first SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { &first } };

/* What another puts there later would be this lambda's to use. */
ENTRY
{
	__u32 zero = 0;
	void *map = bpf_map_lookup_elem(&outer, &zero);
	__u64 *value = map ? bpf_map_lookup_elem(map, &zero) : NULL;

	return value ? *value : RETURN_DROP;
}
