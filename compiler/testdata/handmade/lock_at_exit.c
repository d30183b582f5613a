/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: bpf_spin_lock-ed region */
#include "handmade.h"

struct locked {
	struct bpf_spin_lock lock;
	__u64 n;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct locked);
} shared SEC(".maps");

/* The next request would wait for ever. */
ENTRY
{
	__u32 zero = 0;
	struct locked *l = bpf_map_lookup_elem(&shared, &zero);

	if (!l)
		return RETURN_FAULT;
	bpf_spin_lock(&l->lock);
	l->n++;
	return RETURN_DROP;
}
