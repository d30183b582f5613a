/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How often each key was asked for of late: a count-min sketch, whose counters are halved from time to time (sketch.go). This is what TinyLFU
 * needs to keep the keys that are asked for most (Einziger, Friedman, Manes: TinyLFU, A Highly Efficient Cache Admission Policy, 2017).
 *
 * All counters of a key are in one line of the processor's cache. Processors count at the same time without a lock, and lose some; a counter
 * that is full is written no more, so the most frequent keys do not move between processors.
 */
#ifndef MC_SKETCH_H
#define MC_SKETCH_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "hash.h"

enum mc_sketch_limit {
	MC_SKETCH_LINE = 64, /* counters of a line */
	MC_SKETCH_BITS = 6, /* of a counter's number in its line */
	MC_SKETCH_SHIFT = 40, /* the first of the hash's bits that number a key's counters */
	MC_SKETCH_ROWS = 4, /* counters of a key */
	MC_FREQUENCY_MAX = 255, /* of a counter */
	MC_FREQUENCY_HOT = 64, /* from which on a key is fetched at once, as each moment costs hits */
};

struct mc_sketch_line {
	__u8 counters[MC_SKETCH_LINE];
};

_Static_assert(MC_SKETCH_LINE == 1 << MC_SKETCH_BITS, "a counter's number names each of its line");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct mc_sketch_line);
} mc_sketch SEC(".maps");

extern const volatile __u64 mc_sketch_lines; /* set by the loader */

/* The i-th of a key's counters in its line. */
static __always_inline __u8 *mc_sketch_counter(struct mc_sketch_line *line, __u64 hash, int i)
{
	return &line->counters[hash >> (MC_SKETCH_SHIFT + MC_SKETCH_BITS * i) & (MC_SKETCH_LINE - 1)];
}

/* Counts that a key was asked for. Returns how often that was, or more. */
static __always_inline __u32 mc_count_key(__u64 hash)
{
	__u32 number = mc_one_of(mc_sketch_lines, hash), least = MC_FREQUENCY_MAX;
	struct mc_sketch_line *line = bpf_map_lookup_elem(&mc_sketch, &number);

	if (!line)
		return 0;
	for (int i = 0; i < MC_SKETCH_ROWS; i++) {
		__u8 count = *mc_sketch_counter(line, hash, i);

		if (count < least)
			least = count;
	}
	if (least == MC_FREQUENCY_MAX)
		return least;
	/* What is greater counts other keys too. */
	for (int i = 0; i < MC_SKETCH_ROWS; i++) {
		__u8 *count = mc_sketch_counter(line, hash, i);

		if (*count <= least)
			*count = least + 1;
	}
	return least + 1;
}

#endif
