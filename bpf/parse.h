/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parse: Ethernet, up to two VLAN tags, IPv4 or IPv6, UDP. All other packets, and fragments, belong to the host. */
#ifndef LN_PARSE_H
#define LN_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "verifier.h"

#define LN_LOOPBACK 1 /* the number of interface lo in every network namespace (LOOPBACK_IFINDEX in the kernel) */

/* Whether no link brought the packet at hand: the host asks, for the gateway, and gets what is returned (BPF_PROG_TEST_RUN). No NIC is the loopback. */
static __always_inline int ln_is_asked(struct xdp_md *ctx)
{
	return ctx->ingress_ifindex == LN_LOOPBACK;
}

struct ln_vlan {
	__be16 tci;
	__be16 proto;
};

/* Copies an IPv6 address in words, whatever its alignment. */
static __always_inline void ln_copy_addr(void *to, const volatile void *from)
{
	for (int i = 0; i < 4; i++)
		((__u32 *)to)[i] = ((const volatile __u32 *)from)[i];
}

#define LN_L2_MAX (sizeof(struct ethhdr) + 2 * sizeof(struct ln_vlan))
#define LN_WRAP 50 /* bytes from a tunnel's IP header to the one in it: IPv4, UDP, VXLAN, Ethernet */

/* Where things are in the packet, in bytes from its start. */
struct ln_packet {
	__u32 l3;
	__u32 l4;
	__u32 udp_len; /* header and payload */
	__be16 sport;
	__be16 dport;
	__be16 l3_proto;
	__u16 inner; /* where the inner Ethernet header is; 0: the packet came by no tunnel */
	__u32 network; /* that of a tunnel: a key of ln_networks */
};

static __always_inline int ln_parse_ipv4(void *data, void *end, struct ln_packet *pkt)
{
	struct iphdr *ip = data + pkt->l3;
	__u32 ihl;

	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
		return -1;
	ihl = ip->ihl * 4;
	/* A fragment lacks the UDP header or some of the payload. */
	if (ip->protocol != IPPROTO_UDP || ip->frag_off & bpf_htons(0x3fff))
		return -1;
	/* No reply may come from a multicast address (RFC 1122 section 3.2.1.3). */
	if (bpf_ntohs(ip->tot_len) < ihl || *(__u8 *)&ip->daddr >= 224)
		return -1;
	pkt->l4 = pkt->l3 + ihl;
	pkt->udp_len = bpf_ntohs(ip->tot_len) - ihl;
	return 0;
}

static __always_inline int ln_parse_ipv6(void *data, void *end, struct ln_packet *pkt)
{
	struct ipv6hdr *ip = data + pkt->l3;

	/* Extension headers are rare on the way to a lambda; such packets are the host's. */
	if ((void *)(ip + 1) > end || ip->version != 6 || ip->nexthdr != IPPROTO_UDP || *(__u8 *)&ip->daddr == 0xff)
		return -1;
	pkt->l4 = pkt->l3 + sizeof(*ip);
	pkt->udp_len = bpf_ntohs(ip->payload_len);
	return 0;
}

/* Finds the UDP header behind the link's headers. */
static __always_inline int ln_parse_l3(struct xdp_md *ctx, struct ln_packet *pkt)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udphdr *udp;
	__u32 room;

	if (pkt->l3_proto == bpf_htons(ETH_P_IP)) {
		if (ln_parse_ipv4(data, end, pkt))
			return -1;
	} else if (pkt->l3_proto == bpf_htons(ETH_P_IPV6)) {
		if (ln_parse_ipv6(data, end, pkt))
			return -1;
	} else {
		return -1;
	}
	udp = data + pkt->l4;
	if ((void *)(udp + 1) > end)
		return -1;
	pkt->sport = udp->source;
	pkt->dport = udp->dest;
	if (!pkt->sport)
		return -1; /* nobody to answer (RFC 768) */
	/* The UDP length must fit the IP length, and both must fit the frame, which may have padding. */
	room = pkt->udp_len;
	pkt->udp_len = bpf_ntohs(udp->len);
	if (pkt->udp_len < sizeof(*udp) || pkt->udp_len > room)
		return -1;
	if ((void *)udp + room > end && bpf_xdp_get_buff_len(ctx) < (__u64)pkt->l4 + room)
		return -1;
	return 0;
}

/* Finds the UDP header; 0, or -1 for what is not ours. */
static __always_inline int ln_parse(struct xdp_md *ctx, struct ln_packet *pkt)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;

	if ((void *)(eth + 1) > end || (eth->h_dest[0] | eth->h_source[0]) & 1)
		return -1;
	pkt->l3 = sizeof(*eth);
	pkt->l3_proto = *(__be16 *)(data + 12); /* struct ethhdr is packed, and would be read byte by byte */
#pragma unroll
	for (int i = 0; i < 2; i++) {
		struct ln_vlan *tag = data + pkt->l3;

		if (pkt->l3_proto != bpf_htons(ETH_P_8021Q) && pkt->l3_proto != bpf_htons(ETH_P_8021AD))
			break;
		if ((void *)(tag + 1) > end)
			return -1;
		pkt->l3_proto = tag->proto;
		pkt->l3 += sizeof(*tag);
	}
	pkt->inner = 0;
	pkt->network = 0;
	return ln_parse_l3(ctx, pkt);
}

/* Saves the headers of the tunnel by which a packet came: its Ethernet header begins the packet, its IP header is at offset l3. */
static __always_inline int ln_save_tunnel(void *data, void *end, __u32 l3, struct ln_tunnel *tunnel)
{
	const struct iphdr *ip;
	const struct udphdr *udp;
	const __be32 *vxlan;

	ln_opaque(l3);
	if (l3 > LN_L2_MAX || data + LN_L2_MAX > end)
		return -1;
	tunnel->eth = *(__u64 *)data;
	tunnel->eth_rest = *(__u32 *)(data + 8);
	ip = data + l3;
	udp = (const void *)(ip + 1);
	vxlan = (const void *)(udp + 1);
	if ((void *)(vxlan + 2) > end)
		return -1;
	tunnel->peer_addr = ip->saddr;
	tunnel->own_addr = ip->daddr;
	tunnel->peer_port = udp->source;
	tunnel->vni = vxlan[1];
	return 0;
}

/* Saves what a reply needs of the packet's headers, out of the lambda's reach. */
static __always_inline int ln_save_flow(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_flow *flow)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 outer_l3 = pkt->inner ? pkt->l3 - LN_WRAP : pkt->l3, inner = pkt->inner;
	struct ethhdr *eth = data;
	__u32 l3 = pkt->l3; /* not known to the verifier where the packet was parsed in another function */

	if ((void *)(eth + 1) > end)
		return -1;
	flow->tunnel.vni = 0;
	if (inner) {
		const struct ethhdr *in;

		ln_opaque(inner);
		if (inner > 0xff || ln_save_tunnel(data, end, outer_l3, &flow->tunnel))
			return -1;
		in = data + inner;
		if ((void *)(in + 1) > end)
			return -1;
		flow->eth = *(__u64 *)in;
		flow->eth_rest = *(__u32 *)((void *)in + 8);
	} else {
		flow->eth = *(__u64 *)data;
		flow->eth_rest = *(__u32 *)(data + 8);
	}
	*(__u64 *)flow->vlan_proto = 0;
	if (outer_l3 > sizeof(*eth)) {
		struct ln_vlan *tag = (void *)(eth + 1);

		if ((void *)(tag + 2) > end)
			return -1;
		flow->vlan_proto[0] = eth->h_proto;
		flow->vlan_tci[0] = tag[0].tci;
		if (outer_l3 > sizeof(*eth) + sizeof(*tag)) {
			flow->vlan_proto[1] = tag[0].proto;
			flow->vlan_tci[1] = tag[1].tci;
		}
	}
	ln_opaque(l3);
	if (l3 > 0xff)
		return -1;
	data += l3;
	if (pkt->l3_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = data;

		if ((void *)(ip + 1) > end)
			return -1;
		flow->ipv6 = 0;
		flow->tos = ip->tos;
		*(__u64 *)flow->peer_addr = ip->saddr;
		*(__u64 *)(flow->peer_addr + 8) = 0;
		*(__u64 *)flow->own_addr = ip->daddr;
		*(__u64 *)(flow->own_addr + 8) = 0;
	} else {
		struct ipv6hdr *ip = data;

		if ((void *)(ip + 1) > end)
			return -1;
		flow->ipv6 = 1;
		flow->flow_label = *(__be32 *)ip;
		ln_copy_addr(flow->peer_addr, &ip->saddr);
		ln_copy_addr(flow->own_addr, &ip->daddr);
	}
	flow->once = 0;
	flow->signer = 0;
	flow->payer = 0;
	flow->prepaid = 0;
	flow->peer_port = pkt->sport;
	flow->own_port = pkt->dport;
	return 0;
}

/* True for a source that can be answered: no multicast, loopback, unspecified or own address (RFC 1122 section 3.2.1.3, RFC 4291). */
static __always_inline int ln_is_peer(const struct ln_flow *flow)
{
	const __u64 *addr = (const __u64 *)flow->peer_addr, *own = (const __u64 *)flow->own_addr;
	__u8 first = flow->peer_addr[0];

	if (addr[0] == own[0] && addr[1] == own[1])
		return 0;
	if (flow->ipv6)
		return first != 0xff && (addr[0] || bpf_be64_to_cpu(addr[1]) > 1);
	return first != 0 && first != 127 && first < 224;
}

#endif
