/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: an address */
#include "handmade.h"

/* Half a kilobyte of the kernel's leftovers. */
ENTRY
{
	struct ln_request *r = request();
	__u64 leftovers[32];

	if (!r)
		return RETURN_FAULT;
	asm volatile("" : "=m"(leftovers));
	return bpf_xdp_store_bytes(ctx, r->payload_off, leftovers, sizeof(leftovers)) ? RETURN_FAULT : RETURN_FORWARD;
}
