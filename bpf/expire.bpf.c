// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * Ends an external call that nobody answered in time: its client gets the error "time-out". No packet announces this event,
 * and XDP cannot make one. So pacer (host/pacer.c) runs this program by BPF_PROG_TEST_RUN on a carrier, a packet that
 * begins with the index of the call, and sends what it became. It is attached nowhere: nothing that comes from a wire can
 * make a call expire.
 */
#include "maps.h"
#include "reply.h"

/* Takes a call that is past its deadline out of flight. Returns its slot; 0 if there is nothing to expire. */
static __always_inline __u32 ln_call_expire(__u32 index, struct ln_flow *flow)
{
	struct ln_call *call = bpf_map_lookup_elem(&ln_calls, &index);
	__u64 state;
	__u32 slot;

	if (!call)
		return 0;
	state = *(volatile __u64 *)&call->state;
	if ((__u32)state != LN_CALL_WAITING || bpf_ktime_get_ns() <= call->deadline_ns)
		return 0;
	/* First the copy, then the claim, as in ln_call_end(): the reply may arrive on another CPU just now. */
	*flow = call->flow;
	slot = call->slot;
	return __sync_val_compare_and_swap(&call->state, state, 0) == state ? slot : 0;
}

SEC("xdp.frags")
int ln_expire(struct xdp_md *ctx)
{
	struct ln_answer answer = { .type = LN_TYPE_ERROR, .code = LN_CODE_TIMEOUT, .count = 1 };
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const __u32 *index = data;
	struct ln_stats *stats;
	struct ln_flow flow;
	__u32 slot, head;

	if ((void *)(index + 1) > end)
		return XDP_DROP;
	slot = ln_call_expire(*index, &flow);
	if (!slot)
		return XDP_DROP;
	ln_count(LN_COUNT_TIMEOUTS);
	stats = bpf_map_lookup_elem(&ln_slot_stats, &slot);
	if (stats)
		stats->errors++;
	head = ln_l2_len(&flow) + ln_l3_len(flow.ipv6) + sizeof(struct udphdr) + sizeof(struct ln_rpc);
	return ln_answer(ctx, &flow, head, &answer);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
