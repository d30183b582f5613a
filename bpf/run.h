/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Run: the tail call into a lambda, made within a function, so that it ends this function and not its caller. */
#ifndef LN_RUN_H
#define LN_RUN_H

#include "maps.h"

/*
 * LN_VERDICT_EMPTY, in memory. Verifiers without the fix "bpf: properly verify tail call behavior" of late 2025 believe that
 * run_lambda() always returns the value after the tail call. If that were a constant, they would remove the caller's code for all
 * other verdicts, and every run would be a fault.
 */
volatile __u32 ln_verdict_empty = LN_VERDICT_EMPTY;

static __noinline int run_lambda(struct xdp_md *ctx, __u32 slot)
{
	int verdict = ln_verdict_empty;

	bpf_tail_call(ctx, &ln_programs, slot);
	return verdict;
}

#endif
