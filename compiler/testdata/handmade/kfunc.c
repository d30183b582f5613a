/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: nowhere defined */
#include "handmade.h"

extern int bpf_xdp_metadata_rx_hash(const struct xdp_md *ctx, __u32 *hash, __u32 *type) __ksym;

ENTRY
{
	__u32 hash, type;

	return bpf_xdp_metadata_rx_hash(ctx, &hash, &type);
}
