//go:build ignore

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The echo with a queue before it: `enqueue` leaves each request to the thread of a cpumap entry, on whose CPU `answer` does what
 * the echo does. What runs behind a cpumap cannot return XDP_TX (cpu_map_bpf_prog_run_xdp() of Linux's kernel/bpf/cpumap.c), so a
 * devmap sends the answer.
 */
#include "../frame.h"

enum ln_queue_limit {
	LN_QUEUE_LENGTH = 2048, /* packets, an eighth of what a cpumap lets a queue have */
};

const volatile enum ln_queue_limit limits; /* puts the enum into BTF, from which Go takes it */

const volatile __u32 cpu; /* that answers */

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 1); /* as many as CPUs up to the one that answers */
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} out SEC(".maps");

SEC("xdp.frags")
int enqueue(struct xdp_md *ctx)
{
	struct frame *f = rpc_frame(ctx);

	if (!f || f->rpc.type != LN_TYPE_REQUEST)
		return XDP_PASS;
	return bpf_redirect_map(&queues, cpu, XDP_DROP);
}

SEC("xdp.frags/cpumap")
int answer(struct xdp_md *ctx)
{
	struct frame *f = rpc_frame(ctx);

	if (!f)
		return XDP_DROP;
	swap_ends(f);
	become_response(f);
	return bpf_redirect_map(&out, 0, XDP_DROP);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
