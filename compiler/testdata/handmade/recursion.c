/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: a recursion */
#include "handmade.h"

static __noinline __u32 tree(__u32 n)
{
	lambda_opaque(n);
	return n ? tree(n - 1) * 3 + tree(n / 2) : bpf_get_prandom_u32();
}

ENTRY
{
	return tree(ctx->rx_queue_index);
}
