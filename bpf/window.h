/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which sequence numbers a client has used (docs/protocol.md, "Tags"). NIC program and lambda-host share these rules. */
#ifndef LN_WINDOW_H
#define LN_WINDOW_H

#include "layout.h"

/* How often to try when packets of the same client come to other CPUs, too. */
#define LN_WINDOW_TRIES 4

/*
 * Notes that a client uses a sequence number, and returns whether it did before. A word of the window has the latest of the blocks of 32 numbers
 * that fall on it, and a bit for each that was used. So one exchange decides, whichever CPUs the client's packets come to.
 */
static inline __attribute__((always_inline)) int ln_window_repeats(struct ln_window *window, __u32 sequence)
{
	__u64 block = sequence / LN_WINDOW_BITS, bit = 1ULL << (sequence % LN_WINDOW_BITS);
	volatile __u64 *word = (volatile __u64 *)&window->word[block % LN_WINDOW_WORDS];

	for (int i = 0; i < LN_WINDOW_TRIES; i++) {
		__u64 old = *word, latest = old >> LN_WINDOW_BITS, new = block << LN_WINDOW_BITS | bit;

		if (latest > block || (latest == block && old & bit))
			return 1;
		if (latest == block)
			new |= old;
		if (__sync_bool_compare_and_swap(word, old, new))
			return 0;
	}
	return 1;
}

#endif
