/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: is pinned */
#include "handmade.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct ln_request);
} keep SEC(".maps");

ENTRY
{
	return bpf_map_lookup_elem(&keep, &(__u32){ 0 }) ? RETURN_KEEP : RETURN_DROP;
}
