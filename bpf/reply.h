/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The epilogue's last step: turn the packet at hand into one that we send. Headers are built from the flow that the program
 * kept, never from the packet, so a lambda cannot choose where its reply goes.
 */
#ifndef LN_REPLY_H
#define LN_REPLY_H

#include "auth.h"
#include "bandwidth.h"
#include "headers.h"
#include "tunnel.h"
#include "once/once.h"

/* Cuts the packet to the len bytes at offset at, which it must hold already, with head bytes before them. */
static __always_inline int ln_frame(struct xdp_md *ctx, __u32 at, __u32 head, __u32 len)
{
	int move = at - head, spare = (int)bpf_xdp_get_buff_len(ctx) - (int)(at + len);

	if (spare < 0 || (move && bpf_xdp_adjust_head(ctx, move)))
		return -1;
	if (spare && bpf_xdp_adjust_tail(ctx, -spare))
		return -1;
	return 0;
}

static __always_inline void ln_write_rpc(struct ln_rpc *rpc, const struct ln_rpc *req, const struct ln_answer *answer)
{
	rpc->magic = bpf_htons(LN_RPC_MAGIC);
	rpc->version = LN_RPC_VERSION;
	rpc->type = answer->type;
	rpc->flags = answer->flags;
	rpc->code = answer->code;
	rpc->length = bpf_htons(answer->length);
	rpc->workload = req->workload;
	rpc->revision = bpf_htonl(answer->revision);
	rpc->request = req->request;
	rpc->index = bpf_htonl(answer->index);
	rpc->count = bpf_htonl(answer->count);
	rpc->message_len = bpf_htonl(answer->message_len);
	rpc->method = req->method;
	rpc->deadline_us = 0;
	rpc->client = req->client;
	rpc->sequence = req->sequence;
	rpc->grant = bpf_htonl(answer->grant);
	rpc->tag = 0;
}

/* Writes what is before the UDP header of an answer; -1 where the packet is too short. */
LN_GLOBAL int ln_write_lower(struct xdp_md *ctx, const struct ln_flow *flow, __u32 udp_len)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *l3;

	if (!flow)
		return -1;
	l3 = ln_write_l2(data, end, flow);
	if (flow->tunnel.vni)
		l3 = ln_write_tunnel(l3, end, flow, ln_l3_len(flow->ipv6) + udp_len);
	if (!l3 || l3 + sizeof(struct ipv6hdr) > end)
		return -1;
	if (flow->ipv6)
		ln_write_ipv6(l3, flow->own_addr, flow->peer_addr, flow->flow_label, udp_len);
	else
		ln_write_ipv4(l3, *(__be32 *)flow->own_addr, *(__be32 *)flow->peer_addr, flow->tos, udp_len);
	return 0;
}

/*
 * Sends answer->length bytes at offset at of the packet to the requester. Returns the XDP action.
 */
LN_GLOBAL int ln_answer(struct xdp_md *ctx, struct ln_flow *flow, __u32 at, struct ln_answer *answer)
{
	__u32 l4, head, udp_len;
	struct udphdr *udp;

	if (!flow || !answer)
		return XDP_DROP;
	l4 = ln_l2_len(flow) + ln_l3_len(flow->ipv6);
	head = l4 + sizeof(*udp) + sizeof(struct ln_rpc);
	udp_len = sizeof(*udp) + sizeof(struct ln_rpc) + answer->length;

	if (at > 0xffff || ln_frame(ctx, at, head, answer->length))
		return XDP_DROP;
	if (flow->once)
		ln_once_settle(ctx, flow, head, answer);
	if (ln_write_lower(ctx, flow, udp_len))
		return XDP_DROP;
	udp = (void *)(long)ctx->data + l4;
	if ((void *)(udp + 1) + sizeof(struct ln_rpc) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	udp->source = flow->own_port;
	udp->dest = flow->peer_port;
	udp->len = bpf_htons(udp_len);
	udp->check = 0;
	ln_write_rpc((void *)(udp + 1), (const struct ln_rpc *)flow->rpc, answer);
	if (flow->signer)
		ln_sign(ctx, flow, (void *)(udp + 1), head, answer->length);
	if (flow->ipv6 && ln_finish_ipv6(ctx, flow->own_addr, flow->peer_addr, l4, udp_len))
		return XDP_DROP;
	if (flow->payer && !flow->prepaid)
		ln_charge_frame(flow->payer, bpf_xdp_get_buff_len(ctx));
	return XDP_TX;
}

#endif
