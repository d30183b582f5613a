//go:build ignore

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Leaves each λ-RPC request to the AF_XDP socket of the queue by which it came. */
#include "../frame.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1); /* as many as queues */
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

SEC("xdp.frags")
int deliver(struct xdp_md *ctx)
{
	struct frame *f = rpc_frame(ctx);

	if (!f || f->rpc.type != LN_TYPE_REQUEST)
		return XDP_PASS;
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_DROP);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
