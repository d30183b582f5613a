/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sorts the closed table of coalesce: merge sort from the bottom up, of the entries' numbers. Its keys do not change, so that others may add values meanwhile.
 * The caller is the one who flushes.
 */
#ifndef COALESCE_SORT_H
#define COALESCE_SORT_H

#include "table.h"

/* Whether the key of an entry is not behind that of another, byte by byte. */
static __always_inline int coalesce_in_order(const struct coalesce_table *t, __u32 a, __u32 b)
{
	const struct coalesce_entry *first = &t->entries[a % COALESCE_ENTRIES],
				    *second = &t->entries[b % COALESCE_ENTRIES];

	if (first->key[0] != second->key[0])
		return bpf_be64_to_cpu(first->key[0]) < bpf_be64_to_cpu(second->key[0]);
	return bpf_be64_to_cpu(first->key[1]) <= bpf_be64_to_cpu(second->key[1]);
}

/* Begins with the two runs that are at a place. Not 0 if all is sorted. */
static __always_inline long coalesce_sort_from(struct coalesce_sort *s, __u32 at, __u32 count)
{
	if (at >= count) {
		at = 0;
		s->from ^= 1;
		s->width *= 2;
		if (s->width >= count)
			return 1;
	}
	s->left = s->to = at;
	s->middle = s->right = at + s->width < count ? at + s->width : count;
	s->end = at + 2 * s->width < count ? at + 2 * s->width : count;
	return 0;
}

/* Moves one entry. */
static long coalesce_sort_step(__u32 step, void *unused)
{
	struct coalesce_memory *mem;
	struct coalesce_table *t;
	struct coalesce_sort *s;
	__u32 zero = 0, a, b;

	mem = bpf_map_lookup_elem(&coalesce_memories, &zero);
	if (!mem)
		return 1;
	s = &mem->sort;
	t = coalesce_closed_table(mem);
	a = t->order[s->from & 1][s->left % COALESCE_ENTRIES];
	b = t->order[s->from & 1][s->right % COALESCE_ENTRIES];
	if (s->left < s->middle && (s->right >= s->end || coalesce_in_order(t, a, b))) {
		t->order[~s->from & 1][s->to % COALESCE_ENTRIES] = a;
		s->left++;
	} else {
		t->order[~s->from & 1][s->to % COALESCE_ENTRIES] = b;
		s->right++;
	}
	return ++s->to < s->end ? 0 : coalesce_sort_from(s, s->end, t->count);
}

static __always_inline void coalesce_sort(struct coalesce_memory *mem)
{
	__u32 count = coalesce_closed_table(mem)->count;
	struct coalesce_sort *s = &mem->sort;

	s->from = 0;
	s->width = 1;
	if (count < 2)
		return;
	coalesce_sort_from(s, 0, count);
	bpf_loop(count * COALESCE_PASSES, coalesce_sort_step, NULL, 0);
}

#endif
