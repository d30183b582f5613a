/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static struct bpf_timer timer;
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct bpf_timer);
} table SEC(".maps");

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = bpf_timer_init(&timer, &table, k); /* here */
}
