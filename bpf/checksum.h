/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Internet checksums (RFC 1071) over packets. */
#ifndef LN_CHECKSUM_H
#define LN_CHECKSUM_H

#include "parse.h"

static __always_inline __u16 ln_csum_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/*
 * Sums len bytes at offset off of the packet. The first MTU of a packet is linear; more than 2 KiB is not summed here. The start of
 * the tail is computed before the loop: else the verifier would follow each exit of the loop separately.
 */
LN_GLOBAL __u64 ln_csum_packet(struct xdp_md *ctx, __u32 off, __u32 len)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *tail;
	__u32 i, blocks = len / 32, rest = len % 32;
	__u64 sum = 0;

	if (off > 0xff || blocks > 64)
		return 0;
	data += off;
	tail = data + blocks * 32;
	for (i = 0; i < 64; i++) {
		if (i >= blocks || data + 32 > end)
			break;
		for (int k = 0; k < 8; k++)
			sum += ((__u32 *)data)[k];
		data += 32;
	}
	for (i = 0; i < 16; i++) {
		if (rest < 2 || tail + 2 > end)
			break;
		sum += *(__u16 *)tail;
		tail += 2;
		rest -= 2;
	}
	if (rest && tail + 1 <= end)
		sum += *(__u8 *)tail;
	return sum;
}

/* The sum of the pseudo header, which a UDP checksum covers too (RFC 768, RFC 8200 section 8.1). */
static __always_inline __u64 ln_csum_pseudo(const __u8 *a, const __u8 *b, __u32 ipv6, __u32 udp_len)
{
	__u64 sum = bpf_htons(udp_len) + bpf_htons(IPPROTO_UDP);

	sum += (__u64) * (const __u32 *)a + *(const __u32 *)b;
	if (ipv6)
		for (int i = 4; i < 16; i += 4)
			sum += (__u64) * (const __u32 *)(a + i) + *(const __u32 *)(b + i);
	return sum;
}

/*
 * True if the checksums of the IPv4 header (RFC 1122 section 3.2.1.2) and of the datagram are right. A datagram also passes if it has
 * no checksum or, from a local socket, one that the device was to finish.
 */
static __always_inline int ln_checksum_ok(struct xdp_md *ctx, const struct ln_packet *pkt, const struct ln_flow *flow)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udphdr *udp = data + pkt->l4;
	__u64 pseudo;
	__u16 check;

	if (pkt->l4 > 0xff || (void *)(udp + 1) > end)
		return 0;
	if (!flow->ipv6 && ln_csum_fold(ln_csum_packet(ctx, pkt->l3, pkt->l4 - pkt->l3)) != 0xffff)
		return 0;
	check = udp->check;
	if (!check)
		return !flow->ipv6;
	pseudo = ln_csum_pseudo(flow->peer_addr, flow->own_addr, flow->ipv6, pkt->udp_len);
	return ln_csum_fold(pseudo) == check ||
	       ln_csum_fold(pseudo + ln_csum_packet(ctx, pkt->l4, pkt->udp_len)) == 0xffff;
}

#endif
