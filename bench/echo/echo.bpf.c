//go:build ignore

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The least that an answer in XDP can be: swap MAC addresses, IP addresses and ports, mark the request as its response,
 * send. No checksum has to change but by the type's difference, which is constant.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "rpc_wire.h"

struct frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	struct ln_rpc rpc;
} __attribute__((packed));

static __always_inline void swap_ends(struct frame *f)
{
	__be32 addr = f->ip.saddr;
	__be16 port = f->udp.source;
	__u8 mac[ETH_ALEN];

	__builtin_memcpy(mac, f->eth.h_source, ETH_ALEN);
	__builtin_memcpy(f->eth.h_source, f->eth.h_dest, ETH_ALEN);
	__builtin_memcpy(f->eth.h_dest, mac, ETH_ALEN);
	f->ip.saddr = f->ip.daddr;
	f->ip.daddr = addr;
	f->udp.source = f->udp.dest;
	f->udp.dest = port;
}

/* The type is the low byte of its 16-bit word: RFC 1624, equation 3. */
static __always_inline void become_response(struct frame *f)
{
	__u32 sum = (__u16)~f->udp.check + bpf_htons(LN_TYPE_RESPONSE - LN_TYPE_REQUEST);

	sum = (sum & 0xffff) + (sum >> 16);
	f->udp.check = sum == 0xffff ? 0xffff : (__u16)~sum;
	f->rpc.type = LN_TYPE_RESPONSE;
}

SEC("xdp.frags")
int echo(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct frame *f = (void *)(long)ctx->data;

	if ((void *)(f + 1) > end || f->eth.h_proto != bpf_htons(ETH_P_IP) || f->ip.ihl != 5 ||
	    f->ip.protocol != IPPROTO_UDP || f->udp.dest != bpf_htons(LN_RPC_PORT) || f->rpc.type != LN_TYPE_REQUEST)
		return XDP_PASS;
	swap_ends(f);
	become_response(f);
	return XDP_TX;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
