/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which sequence numbers clients have used (docs/protocol.md, "Tags"). A set has room for some clients. Where it is full, the owner who would
 * have most of its places with the newcomer forgets the client that was silent longest: nobody loses what is no more than a half to one other.
 * NIC program and lambda-host share these rules; who calls them holds the set's lock.
 */
#ifndef LN_WINDOW_H
#define LN_WINDOW_H

#include "layout.h"

#define LN_WINDOW_RULE static inline __attribute__((always_inline))

/* The number of the set that a client is in. Only who has a key gets a window, so nothing secret goes in. */
LN_WINDOW_RULE __u32 ln_window_set(__u32 owner, __u32 client)
{
	return ((owner ^ client * 0x9e3779b1U) * 0x85ebca6bU) >> 20 & (LN_WINDOW_SETS - 1);
}

/* Notes that a client uses a sequence number, and returns whether it did before. */
LN_WINDOW_RULE int ln_window_repeats(struct ln_window *window, __u32 sequence)
{
	__u64 block = sequence / LN_WINDOW_BITS, bit = 1ULL << (sequence % LN_WINDOW_BITS);
	__u64 *word = &window->word[block % LN_WINDOW_WORDS], latest = *word >> LN_WINDOW_BITS;

	if (latest > block || (latest == block && *word & bit))
		return 1;
	*word = (latest == block ? *word : block << LN_WINDOW_BITS) | bit;
	return 0;
}

/* All ones if a number is below another one, both below 2^63; else 0. A comparison would be a branch, and the verifier follows both ways of each. */
LN_WINDOW_RULE __u64 ln_window_below(__u64 a, __u64 b)
{
	__u64 difference = a - b;

	asm volatile("" : "+r"(difference));
	return (__u64)((__s64)difference >> 63);
}

/* The place of a client in its set; LN_WINDOW_WAYS if it has none. */
LN_WINDOW_RULE __u32 ln_window_find(const struct ln_windows *set, __u32 owner, __u32 client)
{
	__u64 found = LN_WINDOW_WAYS;

	for (__u32 way = 0; way < LN_WINDOW_WAYS; way++)
		found ^= (found ^ way) & ln_window_below((set->client[way] ^ client) | (set->owner[way] ^ owner), 1);
	return found;
}

/* The place that an owner's new client gets: a free one, or that of the client that is forgotten. */
LN_WINDOW_RULE __u32 ln_window_choose(const struct ln_windows *set, __u32 newcomer)
{
	__u64 chosen = 0, best = 0, newest = (1ULL << 48) - 1, places, rank;

	for (__u32 way = 0; way < LN_WINDOW_WAYS; way++) {
		places = (2 * LN_WINDOW_WAYS & ln_window_below(set->client[way], 1)) +
			 (1 & ln_window_below(set->owner[way] ^ newcomer, 1));
		for (__u32 other = 0; other < LN_WINDOW_WAYS; other++)
			places += 1 & ln_window_below(set->owner[other] ^ set->owner[way], 1);
		rank = (places << 48) + newest - (set->heard[way] & newest);
		chosen ^= (chosen ^ way) & ln_window_below(best, rank);
		best ^= (best ^ rank) & ln_window_below(best, rank);
	}
	return chosen;
}

/* Whether an owner's client, which is not 0, used a sequence number before. From now on it did. */
LN_WINDOW_RULE int ln_window_replay(struct ln_windows *set, __u32 owner, __u32 client, __u32 sequence)
{
	__u32 way = ln_window_find(set, owner, client);

	if (way >= LN_WINDOW_WAYS) {
		way = ln_window_choose(set, owner) % LN_WINDOW_WAYS;
		asm volatile("" : "+r"(way)); /* so that the verifier knows its bound */
		set->client[way] = 0; /* until its window is empty */
		for (int i = 0; i < LN_WINDOW_WORDS; i++)
			*(volatile __u64 *)&set->window[way].word[i] = 0;
		set->owner[way] = owner;
		set->client[way] = client;
	}
	set->heard[way] = ++set->clock;
	return ln_window_repeats(&set->window[way], sequence);
}

#endif
