/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many packets of a message its client may send, as acknowledgements say. The receiver grants most to the message that has the
 * fewest packets left, as in Homa (Montazeri et al., SIGCOMM 2018). So long messages do not delay short ones, and the packets
 * under way fit the receiver's queues. NIC program and lambda-host share these rules.
 */
#ifndef LN_GRANT_H
#define LN_GRANT_H

#include "../layout.h"

/* 1 if a is less than b, both below 2^63. Without a branch, both sides of which the verifier would follow. */
static inline __attribute__((always_inline)) __u64 ln_grant_less(__u64 a, __u64 b)
{
	__u64 less = (a - b) >> 63;

	asm volatile("" : "+r"(less)); /* keeps the compiler from making it a branch */
	return less;
}

/* Counts the recently acknowledged messages that are shorter than this one, and notes this one among them. */
static inline __attribute__((always_inline)) __u32 ln_grant_rank(struct ln_grants *g, __u32 message, __u32 left,
								 __u64 now)
{
	__u64 rank = 0,
	      place = ~0ULL >> 1; /* this message's entry, or else the entry that was silent for the longest */

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

/* How many packets beyond the last that arrived may be sent: fewer for each shorter message, but always enough to go on. */
static inline __attribute__((always_inline)) __u32 ln_grant_window(__u32 rank)
{
	__u32 window = rank < 4 ? LN_GRANT_MOST >> rank : 0;

	return window > LN_GRANT_LEAST ? window : LN_GRANT_LEAST;
}

#endif
