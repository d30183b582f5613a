/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * External calls: a lambda's request to a service on the network, sent and answered in the NIC program. A call's record is
 * found by its service's own 16-bit request ID; the source port says which use of the record it is, so a late reply to
 * an earlier use finds nobody.
 */
#ifndef LN_CALL_H
#define LN_CALL_H

#include "reply.h"

/* The frame header of memcached's UDP protocol (memcached's doc/protocol.txt). */
struct ln_memcached {
	__be16 request;
	__be16 sequence;
	__be16 total;
	__be16 reserved;
};

#define LN_CALL_TRIES 8
#define LN_CALL_GRACE_NS 50000000ULL

/* Finds a free record; NULL when all that were tried are in use. */
static __always_inline struct ln_call *ln_call_claim(__u64 now, __u32 *index, __u64 *state)
{
	__u32 zero = 0;
	__u64 *next = bpf_map_lookup_elem(&ln_next_call, &zero);

	if (!next)
		return NULL;
	for (int i = 0; i < LN_CALL_TRIES; i++) {
		__u64 n = __sync_fetch_and_add(next, 1);
		struct ln_call *call;
		__u64 old;

		*index = n & (LN_MAX_CALLS - 1);
		call = bpf_map_lookup_elem(&ln_calls, index);
		if (!call)
			return NULL;
		old = *(volatile __u64 *)&call->state;
		/* pacer tells the client that its time is up; where it had no time to, the record is taken all the same. */
		if (old && !((__u32)old == LN_CALL_WAITING && now > call->deadline_ns + LN_CALL_GRACE_NS))
			continue;
		*state = (n / LN_MAX_CALLS) << 32;
		if (__sync_val_compare_and_swap(&call->state, old, *state | LN_CALL_WRITING) == old)
			return call;
	}
	return NULL;
}

/* What leaves, and as which call. */
struct ln_outgoing {
	__u32 at; /* where its bytes stand in the packet */
	__u32 len;
	__u32 index;
	__u32 use;
};

/* Finds the next hop to a service, from one of our own addresses of its family; 0, or not where there is none. */
static __always_inline int ln_next_hop(struct xdp_md *ctx, struct bpf_fib_lookup *fib, const struct ln_service *svc,
				       const volatile void *from)
{
	fib->ifindex = ctx->ingress_ifindex;
	fib->l4_protocol = IPPROTO_UDP;
	if (svc->ipv6) {
		fib->family = 10; /* AF_INET6 */
		ln_copy_addr(fib->ipv6_src, from);
		ln_copy_addr(fib->ipv6_dst, svc->addr);
	} else {
		fib->family = 2; /* AF_INET */
		fib->ipv4_src = *(const volatile __be32 *)from;
		fib->ipv4_dst = *(__be32 *)svc->addr;
	}
	/* It leaves the source as it is, and puts the gateway in the destination's place. */
	return bpf_fib_lookup(ctx, fib, sizeof(*fib), 0) != BPF_FIB_LKUP_RET_SUCCESS;
}

/* Writes the headers of an outgoing call and finds its next hop. Returns the XDP action, or -code of an error. */
LN_GLOBAL int ln_call_send(struct xdp_md *ctx, struct ln_flow *flow, const struct ln_service *svc,
			   const struct ln_outgoing *out)
{
	__u32 l3_len, l4, udp_len;
	struct bpf_fib_lookup fib = {};
	const volatile void *own;
	struct ln_memcached *frame;
	struct udphdr *udp;
	struct ethhdr *eth;
	void *data, *end, *l3;

	if (!flow || !svc || !out)
		return -LN_CODE_LAMBDA_FAULT;
	l3_len = ln_l3_len(svc->ipv6);
	l4 = sizeof(struct ethhdr) + l3_len;
	udp_len = sizeof(struct udphdr) + sizeof(struct ln_memcached) + out->len;
	own = flow->own_addr;
	if (svc->ipv6 != flow->ipv6)
		own = svc->ipv6 ? (const volatile void *)ln_own_addr6 : &ln_own_addr4;
	if (ln_next_hop(ctx, &fib, svc, own))
		return -LN_CODE_UNREACHABLE;

	if (out->at > 0xffff || ln_frame(ctx, out->at, l4 + sizeof(*udp) + sizeof(*frame), out->len))
		return -LN_CODE_LAMBDA_FAULT;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	eth = data;
	l3 = eth + 1;
	if (l3 + sizeof(struct ipv6hdr) > end)
		return -LN_CODE_LAMBDA_FAULT;
	__builtin_memcpy(eth->h_dest, fib.dmac, 6);
	__builtin_memcpy(eth->h_source, fib.smac, 6);
	if (svc->ipv6) {
		eth->h_proto = bpf_htons(ETH_P_IPV6);
		ln_write_ipv6(l3, (const __u8 *)fib.ipv6_src, svc->addr, bpf_htonl(0x60000000), udp_len);
	} else {
		eth->h_proto = bpf_htons(ETH_P_IP);
		ln_write_ipv4(l3, fib.ipv4_src, *(__be32 *)svc->addr, 0, udp_len);
	}
	udp = l3 + l3_len;
	frame = (void *)(udp + 1);
	if ((void *)(frame + 1) > end)
		return -LN_CODE_LAMBDA_FAULT;
	udp->source = bpf_htons(LN_CALL_PORT + out->use % LN_CALL_PORTS);
	udp->dest = svc->port;
	udp->len = bpf_htons(udp_len);
	udp->check = 0;
	frame->request = bpf_htons(out->index);
	frame->sequence = 0;
	frame->total = bpf_htons(1);
	frame->reserved = 0;
	if (svc->ipv6 && ln_finish_ipv6(ctx, (const __u8 *)fib.ipv6_src, svc->addr, l4, udp_len))
		return -LN_CODE_LAMBDA_FAULT;
	return fib.ifindex == ctx->ingress_ifindex ? XDP_TX : bpf_redirect(fib.ifindex, 0);
}

/* Starts a call: the record first, then the packet. Returns the XDP action, or -code of an error. */
LN_GLOBAL int ln_call_begin(struct xdp_md *ctx, struct ln_flow *flow, struct ln_request *req, __u32 slot_index,
			    const struct ln_slot *slot)
{
	struct ln_outgoing out = {};
	__u32 service;
	const struct ln_service *svc;
	struct ln_call *call;
	__u64 state = 0, now;
	int action;

	if (!flow || !req || !slot)
		return -LN_CODE_LAMBDA_FAULT;
	service = slot->service_base + req->service;
	out.at = req->payload_off + req->out_off;
	out.len = req->out_len;
	if (req->service >= slot->service_count || out.len > LN_RPC_MAX_PAYLOAD || req->out_off < -LN_PREFIX)
		return -LN_CODE_LAMBDA_FAULT;
	svc = bpf_map_lookup_elem(&ln_services, &service);
	if (!svc)
		return -LN_CODE_LAMBDA_FAULT;
	/* Not the coarse clock: it may be behind by more than a short time-out. */
	now = bpf_ktime_get_ns();
	call = ln_call_claim(now, &out.index, &state);
	if (!call)
		return -LN_CODE_BUSY;
	call->deadline_ns = now + (__u64)svc->timeout_ms * 1000000;
	call->slot = slot_index;
	call->service = service;
	call->cookie[0] = req->match.cookie[0];
	call->cookie[1] = req->match.cookie[1];
	call->flow = *flow;
	out.use = state >> 32;
	action = ln_call_send(ctx, flow, svc, &out);
	/* A full barrier: whoever sees the record waiting also sees what is in it. */
	__sync_lock_test_and_set(&call->state, action < 0 ? 0 : state | LN_CALL_WAITING);
	return action;
}

/*
 * Finds the call that a datagram answers and takes it out of flight, with the flow that waits for it. Returns its slot;
 * 0 for a stray.
 */
LN_GLOBAL __u32 ln_call_end(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_flow *flow,
			    struct ln_request *req)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 l4, index, use, slot;
	const struct ln_memcached *frame;
	const struct ln_service *svc;
	struct ln_call *call;
	__u64 state;

	if (!pkt || !flow || !req)
		return 0;
	l4 = pkt->l4;
	use = bpf_ntohs(pkt->dport) - LN_CALL_PORT;
	if (l4 > 0xff || pkt->udp_len < sizeof(struct udphdr) + sizeof(*frame))
		return 0;
	frame = data + l4 + sizeof(struct udphdr);
	if ((void *)(frame + 1) > end)
		return 0;
	index = bpf_ntohs(frame->request);
	call = bpf_map_lookup_elem(&ln_calls, &index);
	if (!call)
		return 0;
	state = *(volatile __u64 *)&call->state;
	if ((__u32)state != LN_CALL_WAITING || (state >> 32) % LN_CALL_PORTS != use)
		return 0;
	svc = bpf_map_lookup_elem(&ln_services, &call->service);
	if (!svc || svc->port != pkt->sport || svc->ipv6 != (pkt->l3_proto == bpf_htons(ETH_P_IPV6)))
		return 0;
	/* What the reply's source must be is what the call was sent to (RFC 5452 reasons alike for DNS). */
	if (svc->ipv6) {
		struct ipv6hdr *ip = data + sizeof(struct ethhdr);

		if (pkt->l3 != sizeof(struct ethhdr) || (void *)(ip + 1) > end ||
		    ((__u64 *)&ip->saddr)[0] != ((__u64 *)svc->addr)[0] ||
		    ((__u64 *)&ip->saddr)[1] != ((__u64 *)svc->addr)[1])
			return 0;
	} else {
		struct iphdr *ip = data + sizeof(struct ethhdr);

		if (pkt->l3 != sizeof(struct ethhdr) || (void *)(ip + 1) > end || ip->saddr != *(__be32 *)svc->addr)
			return 0;
	}
	/* First the copy, then the claim: a record that was reused meanwhile has another state. */
	*flow = call->flow;
	slot = call->slot;
	req->match.cookie[0] = call->cookie[0];
	req->match.cookie[1] = call->cookie[1];
	req->out_status = frame->total == bpf_htons(1) ? 0 : LN_CODE_TOO_LARGE;
	if (__sync_val_compare_and_swap(&call->state, state, 0) != state)
		return 0;
	return slot;
}

#endif
