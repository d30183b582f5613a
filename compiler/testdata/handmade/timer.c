/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: timer_init */
#include "handmade.h"

struct with_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct with_timer);
} timers SEC(".maps");

/* Runs on when the lambda is gone. */
ENTRY
{
	__u32 zero = 0;
	struct with_timer *t = bpf_map_lookup_elem(&timers, &zero);

	return t ? bpf_timer_init(&t->timer, &timers, 1) : RETURN_FAULT;
}
