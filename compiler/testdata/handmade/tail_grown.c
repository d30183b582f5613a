/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "handmade.h"

/* Grows the packet as far as possible, then claims all of it as the reply. */
ENTRY
{
	struct ln_request *r = request();

	if (!r)
		return RETURN_FAULT;
	for (int i = 0; i < 8; i++)
		bpf_xdp_adjust_tail(ctx, 4096 >> i);
	r->out_off = 0;
	r->out_len = 1 << 20;
	return RETURN_FORWARD;
}
