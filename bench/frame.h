/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* λ-RPC over UDP, IPv4 and Ethernet, without options or tags: the only frames of benchmarks. */
#ifndef LN_BENCH_FRAME_H
#define LN_BENCH_FRAME_H

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

/* The packet, if it went to the λ-RPC port, else NULL. */
static __always_inline struct frame *rpc_frame(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct frame *f = (void *)(long)ctx->data;

	if ((void *)(f + 1) > end || f->eth.h_proto != bpf_htons(ETH_P_IP) || f->ip.ihl != 5 ||
	    f->ip.protocol != IPPROTO_UDP || f->udp.dest != bpf_htons(LN_RPC_PORT))
		return NULL;
	return f;
}

/* Sends the frame back to where it came from. No checksum changes. */
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

/* Makes a request its own response. The type is the low byte of its 16-bit word: RFC 1624, equation 3. */
static __always_inline void become_response(struct frame *f)
{
	__u32 sum = (__u16)~f->udp.check + bpf_htons(LN_TYPE_RESPONSE - LN_TYPE_REQUEST);

	sum = (sum & 0xffff) + (sum >> 16);
	f->udp.check = sum == 0xffff ? 0xffff : (__u16)~sum;
	f->rpc.type = LN_TYPE_RESPONSE;
}

#endif
