/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: limits.memory */
#include "handmade.h"

/* Together they take 2^64 bytes less 32 GiB, which is little if sums wrap. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 0x80000000);
	__uint(key_size, 4);
	__uint(value_size, 0xfffffff8);
} first SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 0x80000000);
	__uint(key_size, 4);
	__uint(value_size, 0xfffffff8);
} second SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 0x80000000);
	__uint(key_size, 4);
	__uint(value_size, 16);
} third SEC(".maps");

ENTRY
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&first, &zero) || bpf_map_lookup_elem(&second, &zero) ||
	       bpf_map_lookup_elem(&third, &zero);
}
