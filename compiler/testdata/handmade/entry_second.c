/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: a lambda has one entry */
#include "handmade.h"

SEC("xdp.frags")
int another(struct xdp_md *ctx)
{
	return XDP_PASS;
}

ENTRY
{
	return RETURN_DROP;
}
