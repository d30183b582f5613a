/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Room for headers that were added, at a packet's end: what follows the headers is moved. To grow at the head instead would show
 * the packet's sender what other packets left there; the kernel clears what it adds at the end.
 */
#ifndef PIF_RESIZE_H
#define PIF_RESIZE_H

#define PIF_MOVE_MAX 9216 /* bytes behind the headers: a jumbo frame */

struct pif_workspace {
	uint8_t bytes[PIF_MOVE_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pif_workspace);
} pif_workspaces SEC(".maps");

/* Moves all from the offset on by delta bytes; 0, or -1. The verifier proves it once, not once for each way that leads to it. */
__noinline int pif_resize(struct xdp_md *ctx, uint32_t from, int32_t delta)
{
	uint32_t zero = 0, n = bpf_xdp_get_buff_len(ctx) - from;
	struct pif_workspace *work = bpf_map_lookup_elem(&pif_workspaces, &zero);

	asm volatile("" : "+r"(n)); /* the bound that is checked is the bound that is used */
	if (!work || n > PIF_MOVE_MAX || (n && bpf_xdp_load_bytes(ctx, from, work->bytes, n)))
		return -1;
	if (bpf_xdp_adjust_tail(ctx, delta))
		return -1;
	return n && bpf_xdp_store_bytes(ctx, from + delta, work->bytes, n) ? -1 : 0;
}

#endif
