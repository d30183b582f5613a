/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: HashOfMaps */
#include "handmade.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__type(key, __u32);
			__type(value, __u64);
		});
} outer SEC(".maps");

ENTRY
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&outer, &zero) ? RETURN_KEEP : RETURN_DROP;
}
