/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Per-lambda counters. Times are sampled: reading the clock twice takes longer than most lambdas do. */
#ifndef LN_STATS_H
#define LN_STATS_H

#include "maps.h"

/* floor(log2(v)) */
static __always_inline __u32 ln_log2(__u64 v)
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

static __always_inline __u64 ln_sample_begin(struct ln_scratch *scratch)
{
	return ++scratch->tick & (LN_SAMPLE_EVERY - 1) ? 0 : bpf_ktime_get_ns();
}

static __always_inline void ln_sample_end(struct ln_stats *stats, __u64 began)
{
	__u64 ns;

	if (!began)
		return;
	ns = bpf_ktime_get_ns() - began;
	stats->samples++;
	stats->sampled_ns += ns;
	stats->hist[ln_log2(ns) & (LN_HIST_BUCKETS - 1)]++;
}

#endif
