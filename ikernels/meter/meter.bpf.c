// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* The meter of an ikernel that an application has for its sockets. They come and go while the meter stays. */
#include "../../bpf/meter.h"
#include "../attached.h"

/* Not inline: what calls an ikernel has little of the stack. */
static __noinline int ln_is_for_server(struct xdp_md *ctx)
{
	struct ln_packet pkt;
	struct ln_flow flow;

	return !ln_parse(ctx, &pkt) && !ln_save_flow(ctx, &pkt, &flow) && ik_is_attached(ctx, &flow);
}
