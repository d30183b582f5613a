/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__type(key, uint32_t);
	__type(value, uint32_t);
} programs SEC(".maps");

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	bpf_tail_call(request->ctx, &programs, k); /* here */
}
