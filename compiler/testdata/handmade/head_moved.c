/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: xdp_adjust_head */
#include "handmade.h"

/* Leftovers of an earlier packet, before this one. */
ENTRY
{
	return bpf_xdp_adjust_head(ctx, -64) ? RETURN_DROP : RETURN_FORWARD;
}
