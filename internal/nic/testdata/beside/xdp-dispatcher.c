// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A dispatcher for xdp-loader, as newer.c puts it there: that of older releases, such as Debian 12's, has no places for programs that may change a packet's bounds
 * (https://github.com/xdp-project/xdp-tools/pull/509).
 */
#include "../../../xdp/dispatcher/dispatcher.bpf.c"

/* With it, libxdp finds out what the kernel can. */
SEC("xdp")
int xdp_pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

__uint(dispatcher_version, DISPATCHER_VERSION) SEC("xdp_metadata");
