/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: bpf_spin_lock */
#include "handmade.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} mine SEC(".maps");

/* The type says that there is no lock. */
ENTRY
{
	__u32 zero = 0;
	struct bpf_spin_lock *l = bpf_map_lookup_elem(&mine, &zero);

	if (!l)
		return RETURN_FAULT;
	bpf_spin_lock(l);
	bpf_spin_unlock(l);
	return RETURN_DROP;
}
