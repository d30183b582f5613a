/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: limits.memory */
#include "handmade.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 0xffffffff);
	__type(key, __u32);
	__type(value, __u64);
} huge SEC(".maps");

ENTRY
{
	return bpf_map_lookup_elem(&huge, &(__u32){ 0 }) ? RETURN_KEEP : RETURN_DROP;
}
