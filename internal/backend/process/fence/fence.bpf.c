// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * A fence around the processes of one function, whose sockets are in its control group: they send datagrams to those who sent them one, and to the
 * function's services. Native code may make system calls of its own, so the kernel has to refuse. What leaves is looked at as packets, whatever
 * call made them: there are more ways to say where a packet goes than sendto(), such as source routes (ip(7), IP_RETOPTS).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* An address, an IPv4 one mapped into IPv6 (RFC 4291 section 2.5.5.2), and a port, in network order. */
struct fence_peer {
	__u32 addr[4];
	__u32 port;
};

/* Who sent a datagram. Those who have been silent longest are forgotten. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct fence_peer);
	__type(value, __u8);
} fence_clients SEC(".maps");

/* User space writes it, programs only read it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct fence_peer);
	__type(value, __u8);
} fence_services SEC(".maps");

enum { FENCE_REFUSE = 0, FENCE_ALLOW = 1 };

/* Notes that a peer sent a datagram. */
static __always_inline int fence_received(const struct fence_peer *peer)
{
	__u8 known = 1;

	if (!bpf_map_lookup_elem(&fence_clients, peer))
		bpf_map_update_elem(&fence_clients, peer, &known, BPF_ANY);
	return FENCE_ALLOW;
}

SEC("cgroup/recvmsg4")
int fence_recvmsg4(struct bpf_sock_addr *ctx)
{
	struct fence_peer peer = { .addr = { 0, 0, bpf_htonl(0xffff), ctx->user_ip4 }, .port = ctx->user_port };

	return fence_received(&peer);
}

SEC("cgroup/recvmsg6")
int fence_recvmsg6(struct bpf_sock_addr *ctx)
{
	struct fence_peer peer = { .port = ctx->user_port };

	for (int i = 0; i < 4; i++)
		peer.addr[i] = ctx->user_ip6[i];
	return fence_received(&peer);
}

/* Finds whom a packet goes to. Returns where its UDP header is; 0 for what is no plain datagram. */
static __always_inline __u32 fence_destination(struct __sk_buff *skb, struct fence_peer *peer)
{
	struct ipv6hdr ip6;
	struct iphdr ip;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, 0, &ip, sizeof(ip)) || ip.ihl != 5 || ip.protocol != IPPROTO_UDP)
			return 0;
		peer->addr[2] = bpf_htonl(0xffff);
		peer->addr[3] = ip.daddr;
		return sizeof(ip);
	}
	if (bpf_skb_load_bytes(skb, 0, &ip6, sizeof(ip6)) || ip6.version != 6 || ip6.nexthdr != IPPROTO_UDP)
		return 0;
	for (int i = 0; i < 4; i++)
		peer->addr[i] = ip6.daddr.in6_u.u6_addr32[i];
	return sizeof(ip6);
}

SEC("cgroup_skb/egress")
int fence_egress(struct __sk_buff *skb)
{
	struct fence_peer peer = {};
	struct udphdr udp;
	__u32 at = fence_destination(skb, &peer);

	if (!at || bpf_skb_load_bytes(skb, at, &udp, sizeof(udp)))
		return FENCE_REFUSE;
	peer.port = udp.dest;
	if (bpf_map_lookup_elem(&fence_clients, &peer) || bpf_map_lookup_elem(&fence_services, &peer))
		return FENCE_ALLOW;
	return FENCE_REFUSE;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
