//go:build ignore

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts what comes to a socket, and drops it there: so no reader, who could be too slow, decides what is counted. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} received SEC(".maps");

SEC("socket")
int receive(struct __sk_buff *skb)
{
	__u32 zero = 0;
	__u64 *n = bpf_map_lookup_elem(&received, &zero);

	if (n)
		++*n;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
