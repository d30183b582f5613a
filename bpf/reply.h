/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The epilogue's last step: turn the packet at hand into one that we send. Headers are built from the flow that the program
 * kept, never from the packet, so a lambda cannot choose where its reply goes.
 */
#ifndef LN_REPLY_H
#define LN_REPLY_H

#include "checksum.h"
#include "once/once.h"
#include "parse.h"

#define LN_TTL 64

static __always_inline __u32 ln_l2_len(const struct ln_flow *flow)
{
	return sizeof(struct ethhdr) + (flow->vlan_proto[0] ? 4 : 0) + (flow->vlan_proto[1] ? 4 : 0);
}

static __always_inline __u32 ln_l3_len(__u32 ipv6)
{
	return ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

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

/* Writes Ethernet and VLAN headers; returns where the next header starts. */
static __always_inline void *ln_write_l2(void *data, void *end, const struct ln_flow *flow)
{
	struct ethhdr *eth = data;
	struct ln_vlan *tag = (void *)(eth + 1);
	__be16 proto;

	if ((void *)(tag + 2) > end)
		return NULL;
	/* Source and destination, six bytes each, change places. */
	*(__u64 *)data = flow->eth >> 48 | (__u64)flow->eth_rest << 16 | flow->eth << 48;
	*(__u32 *)(data + 8) = flow->eth >> 16;
	proto = flow->ipv6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	*(__be16 *)(data + 12) = flow->vlan_proto[0] ? flow->vlan_proto[0] : proto;
	if (!flow->vlan_proto[0])
		return tag;
	tag->tci = flow->vlan_tci[0];
	tag->proto = proto;
	if (!flow->vlan_proto[1])
		return tag + 1;
	tag[1].tci = flow->vlan_tci[1];
	tag[1].proto = tag->proto;
	tag->proto = flow->vlan_proto[1];
	return tag + 2;
}

static __always_inline void ln_write_ipv4(struct iphdr *ip, __be32 saddr, __be32 daddr, __u8 tos, __u32 udp_len)
{
	__u32 *word = (__u32 *)ip;
	__u64 sum = 0;

	/* Only whole words: a load that spans two smaller stores waits until they have left the store buffer. */
	word[0] = bpf_htonl(0x45000000 | (__u32)tos << 16 | (sizeof(*ip) + udp_len));
	word[1] = bpf_htonl(0x4000); /* no ID, don't fragment (RFC 6864) */
	word[2] = bpf_htonl(LN_TTL << 24 | IPPROTO_UDP << 16);
	word[3] = saddr;
	word[4] = daddr;
	for (int i = 0; i < 5; i++)
		sum += word[i];
	ip->check = ~ln_csum_fold(sum);
}

static __always_inline void ln_write_ipv6(struct ipv6hdr *ip, const __u8 *saddr, const __u8 *daddr, __be32 first,
					  __u32 udp_len)
{
	*(__be32 *)ip = first;
	ip->payload_len = bpf_htons(udp_len);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = LN_TTL;
	ln_copy_addr(&ip->saddr, saddr);
	ln_copy_addr(&ip->daddr, daddr);
}

/* UDP over IPv6 must carry a checksum (RFC 8200 section 8.1); over IPv4 it may be left out (RFC 768), and is. */
static __always_inline int ln_finish_ipv6(struct xdp_md *ctx, const __u8 *a, const __u8 *b, __u32 l4, __u32 udp_len)
{
	__u64 sum = ln_csum_packet(ctx, l4, udp_len) + ln_csum_pseudo(a, b, 1, udp_len);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udphdr *udp;
	__u16 check = ~ln_csum_fold(sum);

	if (l4 > 0xff)
		return -1;
	udp = data + l4;
	if ((void *)(udp + 1) > end)
		return -1;
	udp->check = check ? check : 0xffff;
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

/*
 * Sends answer->length bytes at offset at of the packet to the requester. Returns the XDP action.
 */
LN_GLOBAL int ln_answer(struct xdp_md *ctx, struct ln_flow *flow, __u32 at, struct ln_answer *answer)
{
	__u32 l3_len, l4, head, udp_len;
	void *data, *end, *l3;
	struct udphdr *udp;

	if (!flow || !answer)
		return XDP_DROP;
	l3_len = ln_l3_len(flow->ipv6);
	l4 = ln_l2_len(flow) + l3_len;
	head = l4 + sizeof(*udp) + sizeof(struct ln_rpc);
	udp_len = sizeof(*udp) + sizeof(struct ln_rpc) + answer->length;

	if (at > 0xffff || ln_frame(ctx, at, head, answer->length))
		return XDP_DROP;
	if (flow->once)
		ln_once_settle(ctx, flow, head, answer);
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	l3 = ln_write_l2(data, end, flow);
	if (!l3 || l3 + sizeof(struct ipv6hdr) > end)
		return XDP_DROP;
	if (flow->ipv6)
		ln_write_ipv6(l3, flow->own_addr, flow->peer_addr, flow->flow_label, udp_len);
	else
		ln_write_ipv4(l3, *(__be32 *)flow->own_addr, *(__be32 *)flow->peer_addr, flow->tos, udp_len);
	udp = l3 + l3_len;
	if ((void *)(udp + 1) + sizeof(struct ln_rpc) > end)
		return XDP_DROP;
	udp->source = flow->own_port;
	udp->dest = flow->peer_port;
	udp->len = bpf_htons(udp_len);
	udp->check = 0;
	ln_write_rpc((void *)(udp + 1), (const struct ln_rpc *)flow->rpc, answer);
	if (flow->ipv6 && ln_finish_ipv6(ctx, flow->own_addr, flow->peer_addr, l4, udp_len))
		return XDP_DROP;
	return XDP_TX;
}

#endif
