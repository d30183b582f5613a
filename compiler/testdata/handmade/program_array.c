/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: ProgramArray */
#include "handmade.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u32);
} ln_programs SEC(".maps");

ENTRY
{
	__u32 slot = 0;

	return bpf_map_delete_elem(&ln_programs, &slot);
}
