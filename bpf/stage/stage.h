/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the packets of a match stage go. A stage writes whole packets, so each is parsed again afterwards. It may leave only as a
 * reply to the packet that came, as a request to a service of the stage's spec, or as that service's answer to the client that asked.
 * In each case the link header is written here: a stage does not know the next hop.
 */
#ifndef LN_STAGE_H
#define LN_STAGE_H

#include "../calls/ports.h"
#include "../reply.h"
#include "../route.h"
#include "maps.h"

static __always_inline int ln_same_addr(const __u8 *a, const __u8 *b)
{
	return ((const __u64 *)a)[0] == ((const __u64 *)b)[0] && ((const __u64 *)a)[1] == ((const __u64 *)b)[1];
}

/* Reads the packet that the stage made; -1 where it is not a datagram that we parse. */
static __always_inline int ln_stage_read(struct xdp_md *ctx, struct ln_packet *pkt, struct ln_flow *sent)
{
	return ln_parse(ctx, pkt) || ln_save_flow(ctx, pkt, sent) ? -1 : 0;
}

/* True without IP options. They are not parsed, and could lead a packet elsewhere (RFC 791 section 3.1: source routes). */
static __always_inline int ln_is_plain(const struct ln_packet *pkt, const struct ln_flow *sent)
{
	return pkt->l4 - pkt->l3 == ln_l3_len(sent->ipv6);
}

static __always_inline int ln_is_reply(const struct ln_flow *sent, const struct ln_flow *to)
{
	return sent->ipv6 == to->ipv6 && sent->own_port == to->peer_port && sent->peer_port == to->own_port &&
	       ln_same_addr(sent->own_addr, to->peer_addr) && ln_same_addr(sent->peer_addr, to->own_addr);
}

/* A packet to the host keeps its source and destination; only the port may change. */
static __always_inline int ln_is_unmoved(const struct ln_flow *sent, const struct ln_flow *came)
{
	return sent->eth == came->eth && sent->eth_rest == came->eth_rest &&
	       *(__u64 *)sent->vlan_proto == *(__u64 *)came->vlan_proto && sent->ipv6 == came->ipv6 &&
	       sent->peer_port == came->peer_port && ln_same_addr(sent->peer_addr, came->peer_addr) &&
	       ln_same_addr(sent->own_addr, came->own_addr);
}

/* Writes a reply's link header before the IP header at l3. Returns the XDP action. */
LN_GLOBAL int ln_stage_link(struct xdp_md *ctx, struct ln_flow *flow, __u32 l3)
{
	int move;

	if (!flow)
		return XDP_DROP;
	move = (int)l3 - (int)ln_l2_len(flow);
	if (l3 > 0xff || (move && bpf_xdp_adjust_head(ctx, move)))
		return XDP_DROP;
	if (!ln_write_l2((void *)(long)ctx->data, (void *)(long)ctx->data_end, flow))
		return XDP_DROP;
	return XDP_TX;
}

/* The service of the stage's spec that a packet goes to, or NULL. */
static __always_inline const struct ln_service *ln_stage_service(const struct ln_slot *slot, const struct ln_flow *sent)
{
	for (__u32 i = 0; i < LN_MAX_SERVERS && i < slot->service_count; i++) {
		__u32 index = slot->service_base + i;
		const struct ln_service *svc = bpf_map_lookup_elem(&ln_services, &index);

		if (svc && svc->ipv6 == sent->ipv6 && svc->port == sent->own_port &&
		    ln_same_addr(svc->addr, sent->own_addr))
			return svc;
	}
	return NULL;
}

/* Remembers who waits for a service's answer. */
LN_GLOBAL int ln_stage_remember(struct ln_stage_scratch *scratch, const struct ln_service *svc, __u32 workload)
{
	struct ln_question *question;
	struct ln_asker asker = { .workload = workload };

	if (!scratch || !svc)
		return -1;
	ln_copy_addr(asker.peer_addr, scratch->flow.peer_addr);
	ln_copy_addr(asker.own_addr, scratch->flow.own_addr);
	asker.peer_port = scratch->flow.peer_port;
	asker.own_port = scratch->flow.own_port;
	question = &scratch->question;
	question->flow = scratch->flow;
	ln_copy_addr(question->service_addr, svc->addr);
	question->service_port = svc->port;
	question->asked_from = scratch->sent.peer_port;
	question->until = bpf_ktime_get_ns() + (__u64)svc->timeout_ms * 1000000;
	return bpf_map_update_elem(&ln_questions, &asker, question, BPF_ANY);
}

/* A packet to a service. Its source is the address that the client asked, and no port whose replies are for another lambda. */
LN_GLOBAL int ln_stage_ask(struct xdp_md *ctx, struct ln_stage_scratch *scratch, const struct ln_service *svc, __u32 l3)
{
	struct bpf_fib_lookup fib = {};
	struct ethhdr *eth;
	__u16 port;

	if (!scratch || !svc)
		return XDP_DROP;
	port = bpf_ntohs(scratch->sent.peer_port);
	if (port == LN_RPC_PORT || ln_is_call_port(port) ||
	    !ln_same_addr(scratch->sent.peer_addr, scratch->flow.own_addr) ||
	    ln_next_hop(ctx, &fib, svc, scratch->flow.own_addr))
		return XDP_DROP;
	if (l3 > 0xff || (l3 != sizeof(*eth) && bpf_xdp_adjust_head(ctx, (int)l3 - (int)sizeof(*eth))))
		return XDP_DROP;
	eth = (void *)(long)ctx->data;
	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	__builtin_memcpy(eth->h_dest, fib.dmac, 6);
	__builtin_memcpy(eth->h_source, fib.smac, 6);
	eth->h_proto = svc->ipv6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	scratch->out = fib.ifindex;
	return fib.ifindex == ctx->ingress_ifindex ? XDP_TX : bpf_redirect(fib.ifindex, 0);
}

/* The question that the stage's packet would answer, if a client waits for it. */
static __always_inline struct ln_question *ln_stage_question(const struct ln_flow *sent, struct ln_asker *asker)
{
	ln_copy_addr(asker->peer_addr, sent->own_addr);
	ln_copy_addr(asker->own_addr, sent->peer_addr);
	asker->peer_port = sent->own_port;
	asker->own_port = sent->peer_port;
	return bpf_map_lookup_elem(&ln_questions, asker);
}

/* A service's answer to a client: from the service, to where the query came from, in time (RFC 5452 argues likewise for DNS). */
LN_GLOBAL int ln_stage_answer(struct xdp_md *ctx, struct ln_stage_scratch *scratch, __u32 workload, __u32 l3)
{
	struct ln_asker asker = { .workload = workload };
	const struct ln_flow *came;
	struct ln_question *question;

	if (!scratch)
		return XDP_DROP;
	came = &scratch->flow;
	question = ln_stage_question(&scratch->sent, &asker);
	if (!question || question->flow.ipv6 != scratch->sent.ipv6 || question->service_port != came->peer_port ||
	    question->asked_from != came->own_port || !ln_same_addr(question->service_addr, came->peer_addr) ||
	    question->until < bpf_ktime_get_ns())
		return XDP_DROP;
	scratch->sent = question->flow;
	return ln_stage_link(ctx, &scratch->sent, l3);
}

/* What the stage sends to the wire. Returns the XDP action. */
LN_GLOBAL int ln_stage_send(struct xdp_md *ctx, struct ln_stage_scratch *scratch, const struct ln_slot *slot)
{
	const struct ln_service *svc;
	struct ln_packet pkt = {};
	int action;

	if (!scratch || !slot || ln_stage_read(ctx, &pkt, &scratch->sent) || !ln_is_plain(&pkt, &scratch->sent))
		return XDP_DROP;
	if (ln_is_reply(&scratch->sent, &scratch->flow)) {
		if (bpf_xdp_get_buff_len(ctx) - pkt.l3 > scratch->came) /* no amplification */
			return XDP_DROP;
		return ln_stage_link(ctx, &scratch->flow, pkt.l3);
	}
	svc = ln_stage_service(slot, &scratch->sent);
	if (!svc)
		return ln_stage_answer(ctx, scratch, slot->workload, pkt.l3);
	action = ln_stage_ask(ctx, scratch, svc, pkt.l3);
	if (action != XDP_DROP && ln_stage_remember(scratch, svc, slot->workload))
		return XDP_DROP;
	return action;
}

/* What the stage hands to the host. */
LN_GLOBAL int ln_stage_pass(struct xdp_md *ctx, struct ln_stage_scratch *scratch)
{
	struct ln_packet pkt = {};

	if (!scratch || ln_stage_read(ctx, &pkt, &scratch->sent) || pkt.l4 - pkt.l3 != scratch->came_l3)
		return XDP_DROP;
	return ln_is_unmoved(&scratch->sent, &scratch->flow) ? XDP_PASS : XDP_DROP;
}

#endif
