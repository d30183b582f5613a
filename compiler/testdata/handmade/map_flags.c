/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: flags */
#include "handmade.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u64);
} elements SEC(".maps");

ENTRY
{
	return bpf_map_lookup_elem(&elements, &(__u32){ 0 }) ? RETURN_KEEP : RETURN_DROP;
}
