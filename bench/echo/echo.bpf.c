//go:build ignore

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The least work for an answer in XDP: swap MAC addresses, IP addresses and ports, mark the request as its response,
 * send. Checksums only change by the type's difference, which is constant.
 */
#include "../frame.h"

SEC("xdp.frags")
int echo(struct xdp_md *ctx)
{
	struct frame *f = rpc_frame(ctx);

	if (!f || f->rpc.type != LN_TYPE_REQUEST)
		return XDP_PASS;
	swap_ends(f);
	become_response(f);
	return XDP_TX;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
