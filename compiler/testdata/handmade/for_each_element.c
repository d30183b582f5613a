/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: for_each_map_elem */
#include "handmade.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} mine SEC(".maps");

struct bpf_map;

static long callback(struct bpf_map *map, __u32 *key, __u64 *value, void *context)
{
	return 0;
}

ENTRY
{
	return bpf_for_each_map_elem(&mine, callback, NULL, 0);
}
