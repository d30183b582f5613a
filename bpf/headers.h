/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The headers of a packet that answers the one at hand: Ethernet, up to two VLAN tags, perhaps a tunnel's, IPv4 or IPv6, UDP. */
#ifndef LN_HEADERS_H
#define LN_HEADERS_H

#include "checksum.h"

#define LN_TTL 64

/* The length of what is before the IP header; of a tunnel, before that of the packet in it. */
static __always_inline __u32 ln_l2_len(const struct ln_flow *flow)
{
	return sizeof(struct ethhdr) + (flow->vlan_proto[0] ? 4 : 0) + (flow->vlan_proto[1] ? 4 : 0) +
	       (flow->tunnel.vni ? LN_WRAP : 0);
}

static __always_inline __u32 ln_l3_len(__u32 ipv6)
{
	return ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

/* Writes Ethernet addresses: source and destination, six bytes each, change places. */
static __always_inline void ln_write_eth(void *data, __u64 eth, __u32 rest)
{
	*(__u64 *)data = eth >> 48 | (__u64)rest << 16 | eth << 48;
	*(__u32 *)(data + 8) = eth >> 16;
}

/* Writes Ethernet and VLAN headers, of a tunnel the outer ones; returns where the next header starts. */
static __always_inline void *ln_write_l2(void *data, void *end, const struct ln_flow *flow)
{
	struct ethhdr *eth = data;
	struct ln_vlan *tag = (void *)(eth + 1);
	__be16 proto;

	if ((void *)(tag + 2) > end)
		return NULL;
	if (flow->tunnel.vni)
		ln_write_eth(data, flow->tunnel.eth, flow->tunnel.eth_rest);
	else
		ln_write_eth(data, flow->eth, flow->eth_rest);
	proto = flow->ipv6 && !flow->tunnel.vni ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
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

#endif
