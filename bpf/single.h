/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Serves a request of one packet. */
#ifndef LN_SINGLE_H
#define LN_SINGLE_H

#include "epilogue.h"

/* A request or pull that needs no record. */
static __noinline int ln_single(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
				const struct ln_slot *slot)
{
	int verdict;

	req->match.event = slot->mode == LN_MODE_STREAM ? LAMBDA_EVENT_FRAGMENT : LAMBDA_EVENT_REQUEST;
	verdict = ln_run(ctx, scratch);
	if (verdict == LN_VERDICT_KEEP && slot->mode == LN_MODE_STREAM) {
		req->match.event = LAMBDA_EVENT_COMPLETE;
		verdict = ln_run(ctx, scratch);
	}
	return ln_epilogue(ctx, scratch, req, slot, verdict);
}

#endif
