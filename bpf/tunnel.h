/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tunnels: requests that come by VXLAN over IPv4 (RFC 7348) are served where they lie in the packet, and answered by the tunnel by which they
 * came. All else in a tunnel belongs to the host, as it came.
 */
#ifndef LN_TUNNEL_H
#define LN_TUNNEL_H

#include "headers.h"
#include "match.h"

#define LN_VXLAN_PORT 4789 /* RFC 7348 section 5 */
#define LN_VXLAN_FLAGS 0x08000000 /* the VNI is valid, and nothing else is said */

struct ln_vxlan {
	__be32 flags;
	__be32 vni; /* and 8 bits that are 0 */
};

/* The headers from the outer IP header to the inner one. */
struct ln_wrap {
	struct iphdr ip;
	struct udphdr udp;
	struct ln_vxlan vxlan;
	struct ethhdr eth;
} __attribute__((packed));

_Static_assert(sizeof(struct ln_wrap) == LN_WRAP, "parse.h says another length");

/* Whether a tunnel ends here, and its other end can be answered, as ln_is_ours() and ln_is_peer(). */
static __always_inline int ln_is_tunnel(const struct iphdr *ip)
{
	__u8 first = *(const __u8 *)&ip->saddr;

	return ln_is_own(ip->daddr, 0) && ip->saddr != ip->daddr && first != 0 && first != 127 && first < 224;
}

/*
 * Finds the UDP header in a tunnel: what pkt says is then of the inner packet. 0, or -1 for what is not ours: a network of no namespace, a
 * tunnel that does not end here, or anything but λ-RPC in it.
 */
LN_GLOBAL int ln_unwrap(struct xdp_md *ctx, struct ln_packet *pkt)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ln_packet inner = {};
	const struct ln_wrap *wrap;
	__u32 l3, outer_end, key;

	if (!pkt)
		return -1;
	l3 = pkt->l3;
	ln_opaque(l3);
	if (l3 > LN_L2_MAX || pkt->l3_proto != bpf_htons(ETH_P_IP))
		return -1;
	wrap = data + l3;
	if ((void *)(wrap + 1) > end || pkt->l4 != l3 + sizeof(wrap->ip) ||
	    wrap->vxlan.flags != bpf_htonl(LN_VXLAN_FLAGS) || wrap->vxlan.vni & bpf_htonl(0xff) ||
	    (wrap->eth.h_dest[0] | wrap->eth.h_source[0]) & 1)
		return -1;
	key = LN_NETWORK_VXLAN | bpf_ntohl(wrap->vxlan.vni) >> 8;
	inner.network = key;
	if (!bpf_map_lookup_elem(&ln_networks, &key) || !ln_is_tunnel(&wrap->ip))
		return -1;
	outer_end = pkt->l4 + pkt->udp_len;
	inner.inner = l3 + LN_WRAP - sizeof(struct ethhdr);
	inner.l3 = l3 + LN_WRAP;
	inner.l3_proto = wrap->eth.h_proto;
	if (ln_parse_l3(ctx, &inner) || inner.dport != bpf_htons(LN_RPC_PORT) || inner.l4 + inner.udp_len > outer_end)
		return -1;
	*pkt = inner;
	return 0;
}

/* Writes a tunnel's headers before a packet of len bytes behind its Ethernet header; returns where that packet's IP header starts. */
static __always_inline void *ln_write_tunnel(void *l3, void *end, const struct ln_flow *flow, __u32 len)
{
	const struct ln_tunnel *tunnel = &flow->tunnel;
	struct ln_wrap *wrap = l3;

	if (!wrap || (void *)(wrap + 1) > end)
		return NULL;
	len += sizeof(*wrap) - sizeof(wrap->ip);
	ln_write_ipv4(&wrap->ip, tunnel->own_addr, tunnel->peer_addr,
		      flow->ipv6 ? bpf_ntohl(flow->flow_label) >> 20 : flow->tos, len);
	wrap->udp.source = tunnel->peer_port; /* it tells flows apart (RFC 7348 section 5), as it did for the request */
	wrap->udp.dest = bpf_htons(LN_VXLAN_PORT);
	wrap->udp.len = bpf_htons(len);
	wrap->udp.check = 0;
	wrap->vxlan.flags = bpf_htonl(LN_VXLAN_FLAGS);
	wrap->vxlan.vni = tunnel->vni;
	ln_write_eth(&wrap->eth, flow->eth, flow->eth_rest);
	wrap->eth.h_proto = flow->ipv6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	return wrap + 1;
}

#endif
