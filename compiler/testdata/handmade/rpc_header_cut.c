/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "handmade.h"

/* The payload would begin with the headers, or before the packet. */
ENTRY
{
	struct ln_request *r = request();

	if (!r)
		return RETURN_FAULT;
	r->payload_off = ctx->rx_queue_index ? 0 : 1;
	r->out_off = -4096;
	r->out_len = 64;
	return RETURN_FORWARD;
}
