/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The socket that a datagram is for. */
#ifndef LN_SOCKET_H
#define LN_SOCKET_H

#include "parse.h"

struct ln_socket {
	int connected; /* to the sender */
	int wildcard; /* bound to no address: it gets what comes for all that have no socket of their own */
};

/* Finds the socket that would get a datagram; 0 if there is none. */
static __always_inline int ln_find_socket(struct xdp_md *ctx, const struct ln_flow *flow, struct ln_socket *found)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk;

	if (flow->ipv6) {
		ln_copy_addr(tuple.ipv6.saddr, flow->peer_addr);
		ln_copy_addr(tuple.ipv6.daddr, flow->own_addr);
		tuple.ipv6.sport = flow->peer_port;
		tuple.ipv6.dport = flow->own_port;
		sk = bpf_sk_lookup_udp(ctx, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	} else {
		tuple.ipv4.saddr = *(const __u32 *)flow->peer_addr;
		tuple.ipv4.daddr = *(const __u32 *)flow->own_addr;
		tuple.ipv4.sport = flow->peer_port;
		tuple.ipv4.dport = flow->own_port;
		sk = bpf_sk_lookup_udp(ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return 0;
	found->connected = sk->dst_port != 0;
	found->wildcard = flow->ipv6 ? !(sk->src_ip6[0] | sk->src_ip6[1] | sk->src_ip6[2] | sk->src_ip6[3])
				     : !sk->src_ip4;
	bpf_sk_release(sk);
	return 1;
}

#endif
