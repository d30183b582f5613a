/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which runs are measured. Reading the clock twice takes longer than most lambdas do. */
#ifndef LN_SAMPLE_H
#define LN_SAMPLE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

struct ln_sampler {
	__u32 tick; /* runs so far */
	__u32 pick; /* which of LN_SAMPLE_EVERY runs is the sample */
};

/*
 * Whether to measure a run: one at random of each LN_SAMPLE_EVERY in a row. With every LN_SAMPLE_EVERYth, lambdas whose requests take turns
 * could be measured all the time, or never.
 */
static __always_inline int ln_is_sample(struct ln_sampler *s)
{
	__u32 run = s->tick++ & (LN_SAMPLE_EVERY - 1);

	if (!run)
		s->pick = bpf_get_prandom_u32() & (LN_SAMPLE_EVERY - 1);
	return run == s->pick;
}

#endif
