/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: tail_call */
#include "handmade.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u32);
} ln_programs SEC(".maps");

/* Runs the neighbour, if the name is enough to have the NIC program's table. */
ENTRY
{
	bpf_tail_call(ctx, &ln_programs, 0);
	return RETURN_DROP;
}
