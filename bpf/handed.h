/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In generic mode, a packet that is handed to the host's stack comes to this program a second time
 * (netif_receive_generic_xdp() in net/core/dev.c), and then has to pass. It is recognised by all of its bytes.
 */
#ifndef LN_HANDED_H
#define LN_HANDED_H

#include "copy.h"

/* Packets on their way, by their digests. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, __u32);
} ln_handed SEC(".maps");

/* Where the packet at hand is copied to. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_late);
} ln_handing SEC(".maps");

volatile __u32 ln_handed_count; /* packets in ln_handed */
volatile __u8 ln_generic; /* 1: attached in generic mode; set once that is known */

LN_GLOBAL int ln_handed_begin(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct ln_late *late = bpf_map_lookup_elem(&ln_handing, &zero);
	__u64 key;

	if (!late || ln_late_load(ctx, late))
		return -1;
	late->pass.instance = 0;
	key = ln_late_digest(late);
	if (bpf_map_update_elem(&ln_handed, &key, &zero, BPF_NOEXIST))
		return -1;
	__sync_fetch_and_add(&ln_handed_count, 1);
	return 0;
}

LN_GLOBAL int ln_handed_end(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct ln_late *late = bpf_map_lookup_elem(&ln_handing, &zero);
	__u64 key;

	if (!late || ln_late_load(ctx, late))
		return -1;
	late->pass.instance = 0;
	key = ln_late_digest(late);
	if (bpf_map_delete_elem(&ln_handed, &key))
		return -1;
	__sync_fetch_and_add(&ln_handed_count, -1);
	return 0;
}

#endif
