/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far the client of a message may go on, which acknowledgements say: the receiver grants most to the message that has the
 * fewest packets left, as in Homa (Montazeri et al., SIGCOMM 2018), so that short ones are not held up by long ones and what is
 * under way at once fits the receiver's queues. NIC program and lambda-host share these rules.
 */
#ifndef LN_GRANT_H
#define LN_GRANT_H

#include "../layout.h"

/* 1 where a is less than b, both below 2^63, without a branch: the verifier would follow each of them both ways. */
static inline __attribute__((always_inline)) __u64 ln_grant_less(__u64 a, __u64 b)
{
	__u64 less = (a - b) >> 63;

	asm volatile("" : "+r"(less)); /* nor may the compiler make one of it */
	return less;
}

/* How many messages are shorter than this one, of those that were heard of lately; notes it as one of them. */
static inline __attribute__((always_inline)) __u32 ln_grant_rank(struct ln_grants *g, __u32 message, __u32 left,
								 __u64 now)
{
	__u64 rank = 0,
	      place = ~0ULL >> 1; /* the place is this message's, or that of the one that was silent for the longest */

	/* The clock is coarse, and CPUs write without a lock: a wrong rank costs time, nothing else. */
	for (__u64 i = 0; i < LN_GRANTED; i++) {
		struct ln_granted *at = &g->message[i];
		__u64 seen = at->seen_ns, other = ln_grant_less(0, at->message ^ message);
		__u64 order = (seen & -other) * LN_GRANTED | i;

		rank += other & ln_grant_less(now, seen + LN_GRANT_LATELY_NS) & ln_grant_less(at->left, left);
		place ^= (place ^ order) & -ln_grant_less(order, place);
	}
	place &= LN_GRANTED - 1;
	g->message[place].message = message;
	g->message[place].left = left;
	g->message[place].seen_ns = left ? now : 0;
	return rank;
}

/* Packets beyond the last that arrived: fewer for each shorter message, but always enough to go on. */
static inline __attribute__((always_inline)) __u32 ln_grant_window(__u32 rank)
{
	__u32 window = rank < 4 ? LN_GRANT_MOST >> rank : 0;

	return window > LN_GRANT_LEAST ? window : LN_GRANT_LEAST;
}

#endif
