/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: an address */
#include "handmade.h"

/* What the verifier lets root read of struct bpf_map. */
ENTRY
{
	struct ln_request *r = request();

	if (r)
		r->out_status = *(volatile __u32 *)&ln_requests;
	return RETURN_FORWARD;
}
