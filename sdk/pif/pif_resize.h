/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Room for added headers: the packet grows at its head, where packets of local sockets have room, too, and the headers before
 * the added ones move there. They overwrite all of that room.
 */
#ifndef PIF_RESIZE_H
#define PIF_RESIZE_H

#define PIF_MOVE_MAX 1024 /* bytes of headers */

struct pif_workspace {
	uint8_t bytes[PIF_MOVE_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pif_workspace);
} pif_workspaces SEC(".maps");

/*
 * Makes room for delta bytes, or removes -delta, behind the first n bytes; 0, or -1. The verifier proves the function once, not
 * once for each path to it.
 */
__noinline int pif_resize(struct xdp_md *ctx, uint32_t n, int32_t delta)
{
	uint32_t zero = 0;
	struct pif_workspace *work = bpf_map_lookup_elem(&pif_workspaces, &zero);

	asm volatile("" : "+r"(n)); /* the verifier sees the bound that is checked */
	if (!work || n > PIF_MOVE_MAX || (n && bpf_xdp_load_bytes(ctx, 0, work->bytes, n)))
		return -1;
	if (bpf_xdp_adjust_head(ctx, -delta))
		return -1;
	return n && bpf_xdp_store_bytes(ctx, 0, work->bytes, n) ? -1 : 0;
}

#endif
