// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * Deals with an external call that nobody answered in time: it is sent again, or its client gets the error "time-out". No packet
 * announces this event, and XDP cannot make one. So pacer (host/pacer.c) runs this program by BPF_PROG_TEST_RUN on a carrier, a
 * packet that begins with the index of the call, and sends what it became. It is attached nowhere: nothing that comes from a
 * wire can make a call expire.
 */
#include "maps.h"
#include "reply.h"

/*
 * Turns the carrier into the call's request as it left, behind the index of the interface that it left by. Returns XDP_REDIRECT
 * then, XDP_DROP where the reply came first, and XDP_PASS where the request was not kept.
 */
static __always_inline int ln_call_again(struct xdp_md *ctx, __u32 index, struct ln_call *call, __u64 state)
{
	struct ln_sent *sent = bpf_map_lookup_elem(&ln_retained, &index);
	__u32 len;

	if (!sent || sent->number != LN_CALL_NUMBER(state))
		return XDP_PASS;
	len = sent->len;
	if (!ln_length_fits(len, LN_SENT_MAX) ||
	    bpf_xdp_adjust_tail(ctx, (int)(len + sizeof(sent->ifindex)) - (int)bpf_xdp_get_buff_len(ctx)) ||
	    bpf_xdp_store_bytes(ctx, 0, &sent->ifindex, sizeof(sent->ifindex)) ||
	    bpf_xdp_store_bytes(ctx, sizeof(sent->ifindex), sent->frame, len))
		return XDP_PASS;
	if (__sync_val_compare_and_swap(&call->state, state, state + LN_CALL_ONE_FAILED) != state)
		return XDP_DROP;
	ln_count(LN_COUNT_RETRIES);
	return XDP_REDIRECT;
}

/* Ends a call in whose place there is nothing left to try. */
static __always_inline int ln_call_give_up(struct xdp_md *ctx, __u32 index, struct ln_call *call, __u64 state,
					   __u8 code)
{
	struct ln_answer answer = { .type = LN_TYPE_ERROR, .code = code, .count = 1 };
	struct ln_flow flow = call->flow; /* first the copy, then the claim, as in ln_call_end() */
	__u32 head, slot = call->slot;
	struct ln_stats *stats;

	if (__sync_val_compare_and_swap(&call->state, state, 0) != state)
		return XDP_DROP;
	bpf_map_delete_elem(&ln_retained, &index);
	ln_count(LN_COUNT_TIMEOUTS);
	stats = bpf_map_lookup_elem(&ln_slot_stats, &slot);
	if (stats) {
		stats->errors++;
		stats->late += answer.code == LN_CODE_DEADLINE;
	}
	head = ln_l2_len(&flow) + ln_l3_len(flow.ipv6) + sizeof(struct udphdr) + sizeof(struct ln_rpc);
	return ln_answer(ctx, &flow, head, &answer);
}

SEC("xdp.frags")
int ln_expire(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const __u32 *carrier = data;
	int action = XDP_PASS;
	struct ln_call *call;
	__u32 index;
	__u64 state, now;

	if ((void *)(carrier + 1) > end)
		return XDP_DROP;
	index = *carrier;
	call = bpf_map_lookup_elem(&ln_calls, &index);
	if (!call)
		return XDP_DROP;
	state = *(volatile __u64 *)&call->state;
	now = bpf_ktime_get_ns();
	if (LN_CALL_STATE(state) != LN_CALL_WAITING || now <= LN_CALL_DUE(call, state))
		return XDP_DROP;
	if (now > call->deadline_ns)
		return ln_call_give_up(ctx, index, call, state, LN_CODE_DEADLINE);
	if (LN_CALL_FAILED(state) < call->retries)
		action = ln_call_again(ctx, index, call, state);
	return action == XDP_PASS ? ln_call_give_up(ctx, index, call, state, LN_CODE_TIMEOUT) : action;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
