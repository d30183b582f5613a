/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Run: the tail call into a lambda, made within a function, so that it ends this function and not the root. */
#ifndef LN_RUN_H
#define LN_RUN_H

#include "maps.h"

static __noinline int run_lambda(struct xdp_md *ctx, __u32 slot)
{
	int verdict = LN_VERDICT_EMPTY;

	ln_opaque(verdict);
	bpf_tail_call(ctx, &ln_programs, slot);
	return verdict;
}

#endif
