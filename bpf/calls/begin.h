/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Begins an external call: the epilogue of a lambda that asked for one. */
#ifndef LN_CALLS_BEGIN_H
#define LN_CALLS_BEGIN_H

#include "../reply.h"
#include "../route.h"
#include "ports.h"
#include "random.h"

#define LN_CALL_TRIES 64
#define LN_CALL_GRACE_NS 50000000ULL

/* An outgoing request, and its call. */
struct ln_outgoing {
	__u32 at; /* where its bytes stand in the packet */
	__u32 len;
	__u32 index;
	__u32 ifindex; /* out: the interface that it leaves by */
	__u64 number;
	__u64 id; /* protocol raw */
	__be16 port;
	__u16 pad;
	__u32 pad2;
};

/*
 * Takes a record for a call, unless it is in use. pacer reports an expired call to its client; if pacer is late, the record is taken all the same.
 */
LN_GLOBAL int ln_call_take(__u32 index, __u64 number, __u64 now)
{
	struct ln_call *call = bpf_map_lookup_elem(&ln_calls, &index);
	__u64 old;

	if (!call)
		return -1;
	old = *(volatile __u64 *)&call->state;
	if (old &&
	    (LN_CALL_STATE(old) != LN_CALL_WAITING || now <= LN_CALL_DUE(call, call->retries << 8) + LN_CALL_GRACE_NS))
		return -1;
	if (__sync_val_compare_and_swap(&call->state, old, number << 16 | LN_CALL_WRITING) != old)
		return -1;
	if (old)
		bpf_map_delete_elem(&ln_retained, &index);
	return 0;
}

/* Takes some record for a call, starting at a random one; NULL when all records it tried are in use. */
static __always_inline struct ln_call *ln_call_take_any(__u32 raw, __u64 random, __u64 now, struct ln_outgoing *out)
{
	for (__u32 i = 0; i < LN_CALL_TRIES; i++) {
		out->index = raw ? LN_MAX_CALLS + ((random + i) & (LN_MAX_RAW_CALLS - 1))
				 : (random + i) & (LN_MAX_CALLS - 1);
		if (!ln_call_take(out->index, out->number, now))
			return bpf_map_lookup_elem(&ln_calls, &out->index);
	}
	return NULL;
}

/* Gives a call its number, and the request ID or port by which its answer is recognised; NULL where there is no free record. */
static __always_inline struct ln_call *ln_call_claim(const struct ln_service *svc, __u64 now, struct ln_outgoing *out)
{
	__u32 zero = 0, raw = svc->protocol == LN_PROTOCOL_RAW, entry;
	__u64 random, *log, *next = bpf_map_lookup_elem(&ln_next_call, &zero);
	struct ln_call *call;

	if (!next)
		return NULL;
	out->number = __sync_fetch_and_add(next, 1);
	random = ln_random(out->number);
	call = ln_call_take_any(raw, random, now, out);
	entry = out->number & (LN_MAX_CALLS - 1);
	log = bpf_map_lookup_elem(&ln_call_log, &entry);
	if (log)
		*(volatile __u64 *)log = LN_CALL_LOGGED(out->number, call ? out->index : LN_CALL_NONE);
	out->port = bpf_htons(raw ? LN_RAW_PORT + (out->index & (LN_MAX_RAW_CALLS - 1))
				  : LN_CALL_PORT + ((random >> 16) & (LN_CALL_PORTS - 1)));
	if (svc->id_len)
		out->id = ln_random(~out->number);
	return call;
}

/* Writes the request ID into a datagram of protocol raw, whose bytes begin at offset at. */
static __always_inline int ln_call_mark(struct xdp_md *ctx, const struct ln_service *svc, const struct ln_outgoing *out,
					__u32 at)
{
	__u64 id = out->id;

	switch (svc->id_len) {
	case 2:
		return bpf_xdp_store_bytes(ctx, at + svc->id_at, &id, 2);
	case 4:
		return bpf_xdp_store_bytes(ctx, at + svc->id_at, &id, 4);
	case 8:
		return bpf_xdp_store_bytes(ctx, at + svc->id_at, &id, 8);
	}
	return 0;
}

/* Writes the headers of an outgoing call and finds its next hop. Returns the XDP action, or -code of an error. */
LN_GLOBAL int ln_call_send(struct xdp_md *ctx, struct ln_flow *flow, const struct ln_service *svc,
			   struct ln_outgoing *out)
{
	__u32 l3_len, l4, head, udp_len;
	struct bpf_fib_lookup fib = {};
	const volatile struct ln_addresses *addresses;
	const volatile void *own;
	__u32 zero = 0;
	struct ln_memcached *frame;
	struct udphdr *udp;
	struct ethhdr *eth;
	void *data, *end, *l3;

	if (!flow || !svc || !out)
		return -LN_CODE_LAMBDA_FAULT;
	l3_len = ln_l3_len(svc->ipv6);
	l4 = sizeof(struct ethhdr) + l3_len;
	head = sizeof(*udp) + ln_call_frame(bpf_ntohs(out->port));
	udp_len = head + out->len;
	own = flow->own_addr;
	addresses = bpf_map_lookup_elem(&ln_own, &zero);
	if (!addresses)
		return -LN_CODE_UNREACHABLE;
	/* In a tunnel or VLAN, the address is one of that network, and the call is not. */
	if (svc->ipv6 != flow->ipv6 || ln_l2_len(flow) > sizeof(struct ethhdr))
		own = svc->ipv6 ? (const volatile void *)addresses->own6 : &addresses->own4;
	if (ln_next_hop(ctx, &fib, svc, own))
		return -LN_CODE_UNREACHABLE;

	if (out->at > 0xffff || ln_frame(ctx, out->at, l4 + head, out->len))
		return -LN_CODE_LAMBDA_FAULT;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	eth = data;
	l3 = eth + 1;
	if (l3 + sizeof(struct iphdr) > end)
		return -LN_CODE_LAMBDA_FAULT;
	__builtin_memcpy(eth->h_dest, fib.dmac, 6);
	__builtin_memcpy(eth->h_source, fib.smac, 6);
	if (svc->ipv6) {
		if (l3 + sizeof(struct ipv6hdr) > end)
			return -LN_CODE_LAMBDA_FAULT;
		eth->h_proto = bpf_htons(ETH_P_IPV6);
		ln_write_ipv6(l3, (const __u8 *)fib.ipv6_src, svc->addr, bpf_htonl(0x60000000), udp_len);
	} else {
		eth->h_proto = bpf_htons(ETH_P_IP);
		ln_write_ipv4(l3, fib.ipv4_src, *(__be32 *)svc->addr, 0, udp_len);
	}
	udp = l3 + l3_len;
	if ((void *)(udp + 1) > end)
		return -LN_CODE_LAMBDA_FAULT;
	udp->source = out->port;
	udp->dest = svc->port;
	udp->len = bpf_htons(udp_len);
	udp->check = 0;
	if (head > sizeof(*udp)) {
		frame = (void *)(udp + 1);
		if ((void *)(frame + 1) > end)
			return -LN_CODE_LAMBDA_FAULT;
		frame->request = bpf_htons(out->index);
		frame->sequence = 0;
		frame->total = bpf_htons(1);
		frame->reserved = 0;
	}
	if (ln_call_mark(ctx, svc, out, l4 + head))
		return -LN_CODE_LAMBDA_FAULT;
	if (svc->ipv6 && ln_finish_ipv6(ctx, (const __u8 *)fib.ipv6_src, svc->addr, l4, udp_len))
		return -LN_CODE_LAMBDA_FAULT;
	out->ifindex = fib.ifindex;
	return fib.ifindex == ctx->ingress_ifindex ? XDP_TX : bpf_redirect(fib.ifindex, 0);
}

/*
 * Keeps the packet at hand, a request to a service, for pacer to send again. Where there is no room for it, the call has one try.
 */
static __always_inline void ln_call_retain(struct xdp_md *ctx, const struct ln_outgoing *out)
{
	__u32 zero = 0, index = out->index, len = bpf_xdp_get_buff_len(ctx);
	struct ln_sent *sent = bpf_map_lookup_elem(&ln_sending, &zero);

	if (!sent || !ln_length_fits(len, LN_SENT_MAX) || bpf_xdp_load_bytes(ctx, 0, sent->frame, len))
		return;
	sent->number = out->number;
	sent->ifindex = out->ifindex;
	sent->len = len;
	bpf_map_update_elem(&ln_retained, &index, sent, BPF_ANY);
}

/* The record of the server that a call goes to: among a service's servers, its key chooses. */
static __always_inline __u32 ln_call_server(const struct ln_slot *slot, const struct ln_request *req)
{
	__u32 service = req->service, first;
	const struct ln_service *svc;

	ln_opaque(service);
	if (service >= LN_MAX_SERVICES || slot->first[service] >= slot->service_count)
		return ~0U;
	first = slot->service_base + slot->first[service];
	svc = bpf_map_lookup_elem(&ln_services, &first);
	return svc ? first + svc->shares[ln_share(req->key)] : ~0U;
}

/* Charges for the call that is sent, and for the longest answer there can be: once the service answered, it is too late to refuse that. */
static __always_inline void ln_charge_call(struct xdp_md *ctx, const struct ln_flow *flow)
{
	__u32 bytes = bpf_xdp_get_buff_len(ctx);

	if (!flow->payer)
		return;
	if (!flow->prepaid)
		bytes += ln_l2_len(flow) + (flow->tunnel.vni ? LN_WRAP : 0) + ln_l3_len(flow->ipv6) +
			 sizeof(struct udphdr) + sizeof(struct ln_rpc) + flow->room;
	ln_charge_frame(flow->payer, bytes);
}

/* Starts a call: the record first, then the packet. Returns the XDP action, or -code of an error. */
LN_GLOBAL int ln_call_begin(struct xdp_md *ctx, struct ln_flow *flow, struct ln_request *req, __u32 slot_index,
			    const struct ln_slot *slot)
{
	struct ln_outgoing out = {};
	__u32 service;
	const struct ln_service *svc;
	struct ln_call *call;
	__u64 now;
	__u32 deadline;
	int action;

	if (!flow || !req || !slot)
		return -LN_CODE_LAMBDA_FAULT;
	out.at = req->payload_off + req->out_off;
	out.len = req->out_len;
	service = ln_call_server(slot, req);
	svc = bpf_map_lookup_elem(&ln_services, &service);
	if (!svc || out.len > LN_RPC_MAX_PAYLOAD || req->out_off < -LN_PREFIX)
		return -LN_CODE_LAMBDA_FAULT;
	if (svc->id_len && out.len < (__u32)svc->id_at + svc->id_len)
		return -LN_CODE_LAMBDA_FAULT;
	/* Not the coarse clock, which may be behind by more than a short time-out. */
	now = bpf_ktime_get_ns();
	call = ln_call_claim(svc, now, &out);
	if (!call)
		return -LN_CODE_BUSY;
	call->began_ns = now;
	call->timeout_ms = svc->timeout_ms;
	call->retries = svc->retries;
	call->id = out.id;
	deadline = bpf_ntohl(((const struct ln_rpc *)flow->rpc)->deadline_us);
	call->deadline_ns = deadline ? now + deadline * 1000ULL : ~0ULL;
	call->slot = slot_index;
	call->service = service;
	call->port = out.port;
	call->cookie[0] = req->match.cookie[0];
	call->cookie[1] = req->match.cookie[1];
	call->flow = *flow;
	call->flow.prepaid = 1;
	action = ln_call_send(ctx, flow, svc, &out);
	if (action >= 0)
		ln_charge_call(ctx, flow);
	if (action >= 0 && svc->retries)
		ln_call_retain(ctx, &out);
	/* A full barrier: whoever sees the record waiting also sees what is in it. */
	__sync_lock_test_and_set(&call->state, action < 0 ? 0 : out.number << 16 | LN_CALL_WAITING);
	return action;
}

#endif
