// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* The meter of an ikernel whose server is at addresses that user space knows. */
#include "../../bpf/meter.h"
#include "../../bpf/server.h"

static __always_inline int ln_is_for_server(struct xdp_md *ctx)
{
	struct ln_packet pkt;
	struct ln_flow flow;

	return !ln_parse(ctx, &pkt) && !ln_save_flow(ctx, &pkt, &flow) && ln_is_servers(&flow);
}
