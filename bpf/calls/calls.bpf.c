// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* The end of an external call: its answer arrived, which the root hands over, or none came in time. */
#include "../epilogue.h"

/* Whether a datagram comes from a server. */
static __always_inline int ln_is_from(struct xdp_md *ctx, const struct ln_packet *pkt, const struct ln_service *svc)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ipv6hdr *ip6 = data + sizeof(struct ethhdr);
	struct iphdr *ip4 = data + sizeof(struct ethhdr);

	if (svc->port != pkt->sport || svc->ipv6 != (pkt->l3_proto == bpf_htons(ETH_P_IPV6)) ||
	    pkt->l3 != sizeof(struct ethhdr))
		return 0;
	if (!svc->ipv6)
		return (void *)(ip4 + 1) <= end && ip4->saddr == *(__be32 *)svc->addr;
	return (void *)(ip6 + 1) <= end && ((__u64 *)&ip6->saddr)[0] == ((__u64 *)svc->addr)[0] &&
	       ((__u64 *)&ip6->saddr)[1] == ((__u64 *)svc->addr)[1];
}

/* Whether an answer, whose bytes begin at offset at, has its request's ID. */
static __always_inline int ln_has_id(struct xdp_md *ctx, const struct ln_service *svc, __u64 id, __u32 at)
{
	__u64 got = 0;

	switch (svc->id_len) {
	case 2:
		return !bpf_xdp_load_bytes(ctx, at + svc->id_at, &got, 2) && got == (__u16)id;
	case 4:
		return !bpf_xdp_load_bytes(ctx, at + svc->id_at, &got, 4) && got == (__u32)id;
	case 8:
		return !bpf_xdp_load_bytes(ctx, at + svc->id_at, &got, 8) && got == id;
	}
	return 1;
}

/* The record that a datagram to one of the calls' ports names. Sets *total to the number of datagrams in the answer. */
static __always_inline __u32 ln_call_index(struct xdp_md *ctx, const struct ln_packet *pkt, __be16 *total)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 l4 = pkt->l4, port = bpf_ntohs(pkt->dport);
	const struct ln_memcached *frame;

	*total = bpf_htons(1);
	if (!ln_call_frame(port))
		return LN_MAX_CALLS + port - LN_RAW_PORT;
	if (l4 > 0xff || pkt->udp_len < sizeof(struct udphdr) + sizeof(*frame))
		return LN_CALL_NONE;
	frame = data + l4 + sizeof(struct udphdr);
	if ((void *)(frame + 1) > end)
		return LN_CALL_NONE;
	*total = frame->total;
	return bpf_ntohs(frame->request);
}

/*
 * Finds the call that a datagram answers, takes it out of flight and copies the flow that waits for it. Returns the call's slot,
 * or 0 for a stray or forged datagram, which it counts.
 */
LN_GLOBAL __u32 ln_call_end(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_flow *flow,
			    struct ln_request *req)
{
	const struct ln_service *svc;
	__u32 index, slot, retries;
	struct ln_call *call;
	__u64 state, seen;
	__be16 total;

	if (!pkt || !flow || !req)
		return 0;
	index = ln_call_index(ctx, pkt, &total);
	call = bpf_map_lookup_elem(&ln_calls, &index);
	if (!call)
		goto stray;
	state = *(volatile __u64 *)&call->state;
	if (LN_CALL_STATE(state) != LN_CALL_WAITING || call->port != pkt->dport)
		goto stray;
	svc = bpf_map_lookup_elem(&ln_services, &call->service);
	if (!svc)
		goto stray;
	if (!ln_is_from(ctx, pkt, svc) ||
	    !ln_has_id(ctx, svc, call->id, pkt->l4 + sizeof(struct udphdr) + ln_call_frame(bpf_ntohs(pkt->dport)))) {
		ln_count(LN_COUNT_FORGED);
		return 0;
	}
	/* First the copy, then the claim: a record that was reused meanwhile has another state. */
	*flow = call->flow;
	slot = call->slot;
	retries = call->retries;
	req->match.cookie[0] = call->cookie[0];
	req->match.cookie[1] = call->cookie[1];
	req->out_status = total == bpf_htons(1) ? 0 : LN_CODE_TOO_LARGE;
	seen = __sync_val_compare_and_swap(&call->state, state, 0);
	if (seen == state + LN_CALL_ONE_FAILED) /* pacer is sending it again just now */
		seen = __sync_val_compare_and_swap(&call->state, seen, 0) - LN_CALL_ONE_FAILED;
	if (seen != state)
		goto stray;
	if (retries)
		bpf_map_delete_elem(&ln_retained, &index);
	return slot;
stray:
	ln_count(LN_COUNT_STRAY);
	return 0;
}

/*
 * Makes room before a service's answer, where the driver has any. If the lambda makes the answer longer, lambda_shift()
 * (sdk/lambda_bpf.h) moves it forward: a packet from a local socket has no memory behind its end.
 */
static __always_inline void ln_spare(struct xdp_md *ctx, struct ln_request *req)
{
	__u8 *data, *end;

	if (bpf_xdp_adjust_head(ctx, -LN_SPARE))
		return;
	req->payload_off += LN_SPARE;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + LN_SPARE > end)
		return;
	for (int i = 0; i < LN_SPARE; i += sizeof(__u64)) /* a lambda must not see what an earlier packet left there */
		*(__u64 *)(data + i) = 0;
}

/* Runs the lambda again, on the answer. */
static __always_inline int ln_resume(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_scratch *scratch,
				     struct ln_request *req)
{
	__u32 frame = sizeof(struct udphdr) + ln_call_frame(bpf_ntohs(pkt->dport));
	const struct ln_slot *slot;
	const struct ln_rpc *rpc;

	scratch->slot = ln_call_end(ctx, pkt, &scratch->flow, req);
	slot = bpf_map_lookup_elem(&ln_slots, &scratch->slot);
	if (!scratch->slot || !slot)
		return XDP_PASS; /* no call waits for it: perhaps a socket of the host does */
	rpc = (const struct ln_rpc *)scratch->flow.rpc;
	req->payload_off = pkt->l4 + frame;
	if (req->out_status)
		return ln_refuse_for(ctx, scratch, req->out_status, 0);
	req->match.workload = slot->workload;
	req->match.revision = slot->revision;
	req->match.method = bpf_ntohl(rpc->method);
	req->match.request = bpf_be64_to_cpu(rpc->request);
	req->match.message_len = pkt->udp_len - frame;
	req->match.payload_len = req->match.message_len;
	req->match.offset = 0;
	req->match.room = scratch->flow.room;
	req->match.window = 0;
	req->match.window_len = 0;
	req->match.repeat = 0;
	req->match.event = LAMBDA_EVENT_REPLY;
	ln_spare(ctx, req);
	req->step = LN_STEP_RUN;
	req->out_off = 0;
	req->out_len = 0;
	req->out_total = 0;
	return ln_epilogue(ctx, scratch, req, slot, ln_run(ctx, scratch));
}

/* A datagram to one of the calls' ports. */
SEC("xdp.frags")
int ln_calls_module(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct ln_scratch *scratch = bpf_map_lookup_elem(&ln_scratchpads, &zero);
	struct ln_request *req = bpf_map_lookup_elem(&ln_requests, &zero);
	struct ln_packet pkt;

	if (!scratch || !req || ln_parse(ctx, &pkt))
		return XDP_PASS;
	return ln_resume(ctx, &pkt, scratch, req);
}

/*
 * Turns the carrier into the call's request as it was sent, after the index of the interface to send it by. Returns XDP_REDIRECT
 * on success, XDP_DROP where the reply came first, and XDP_PASS where the request was not kept.
 */
static __always_inline int ln_call_again(struct xdp_md *ctx, __u32 index, struct ln_call *call, __u64 state)
{
	struct ln_sent *sent = bpf_map_lookup_elem(&ln_retained, &index);
	__u32 len, payer = call->flow.payer; /* before the claim, as in ln_call_end() */

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
	if (payer)
		ln_charge_frame(payer, len);
	return XDP_REDIRECT;
}

/* Ends a call that has no try left. */
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

/*
 * Deals with a call that was not answered in time: it is sent again, or its client gets the error "time-out". No packet
 * announces this event, and XDP cannot make one. So pacer (host/pacer.c) runs this program by BPF_PROG_TEST_RUN on a carrier, a
 * packet that begins with the call's index, and sends the result. The program is attached nowhere, and the root does not hand over to
 * it: no packet from a wire can make a call expire.
 */
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
