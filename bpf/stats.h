/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Per-lambda counters. Times are sampled (sample.h). */
#ifndef LN_STATS_H
#define LN_STATS_H

#include "maps.h"

/* floor(log2(v)) */
LN_GLOBAL __u32 ln_log2(__u64 v)
{
	__u32 r = 0;

	for (int shift = 32; shift; shift >>= 1) {
		if (v >> shift) {
			v >>= shift;
			r += shift;
		}
	}
	return r;
}

static __always_inline void ln_sampled(struct ln_stats *stats, __u64 ns)
{
	stats->samples++;
	stats->sampled_ns += ns;
	stats->hist[ln_log2(ns) & (LN_HIST_BUCKETS - 1)]++;
}

#endif
