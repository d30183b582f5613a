/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Guards: may a value that the server sent be kept?
 *
 * A write begins when the server has read it, before the server can execute it, and ends when the server has certainly executed it. A reply
 * shows a key's value as it was at some moment between the reading of its request and now. If no write of the key was pending at that reading,
 * and none has begun since, the key still has that value.
 *
 * A guard is one word: in its low bits the number of writes that are pending, above them a number that grows with every beginning and end. So
 * a guard that is the same, and has no write pending, was the same in between. Keys share a limited number of guards. That two keys share
 * one keeps fewer replies, and never a wrong one.
 *
 * The cache keeps with each value the words that its guards had when the server was asked for it, and answers while they are the same. So a write
 * needs to look for no value that it makes stale.
 */
#ifndef MC_GUARD_H
#define MC_GUARD_H

#include "kernel.h"

enum mc_guard_limit {
	MC_GUARD_ALL = 0, /* the guard of writes that may change any key */
	MC_GUARD_KEYS = 1, /* the first of those of single keys */
	MC_GUARD_PENDING = 1 << 24, /* writes that can be pending, a power of two */
	MC_GUARD_CLOSED = -1, /* the word of a guard with a write pending, for those who ask */
};

enum {
	MC_GUARDS_FLAGS = BPF_F_MMAPABLE | BPF_F_INNER_MAP
}; /* user space reads them; the observer has maps of several sizes */

static __always_inline __u32 mc_guard_of(__u64 hash, __u64 mask)
{
	return MC_GUARD_KEYS + (hash & mask);
}

#endif
