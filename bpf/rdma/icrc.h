/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RoCEv2's invariant CRC (InfiniBand specification, annex A17.3.3): CRC-32 over a packet from its IP header on, with ones in place
 * of the fields that routers change, after eight bytes of ones. It takes sixteen bytes at a time through sixteen tables, which the
 * loader fills: BPF has neither an instruction nor a helper for it.
 */
#ifndef LN_ICRC_H
#define LN_ICRC_H

#include "../reply.h"
#include "../roce_wire.h"
#include "maps.h"

/* Table i holds the CRCs of a byte with i zeros behind it. */
const volatile __u32 ln_crc_tables[LN_ROCE_CRC_SLICE][256];

#define LN_CRC_STEP 16
#define LN_CRC_CHUNK 256

/* The offset in a table is a byte's value times four, cut out of the word at once; the table's own offset is a constant. */
#define LN_CRC_AT(base, table, place) \
	(*(const volatile __u32 *)((base) + (table) * sizeof(ln_crc_tables[0]) + ((place) & 0x3fc)))

static __always_inline __u32 ln_crc_part(__u32 word, __u32 table)
{
	const volatile void *base = ln_crc_tables;

	ln_opaque(base);
	return LN_CRC_AT(base, table, word << 2) ^ LN_CRC_AT(base, table - 1, word >> 6) ^
	       LN_CRC_AT(base, table - 2, word >> 14) ^ LN_CRC_AT(base, table - 3, word >> 22);
}

static __always_inline __u32 ln_crc_word(__u32 crc, __u32 word)
{
	return ln_crc_part(crc ^ word, 3);
}

static __always_inline __u32 ln_crc_step(__u32 crc, const __u32 *p)
{
	return ln_crc_part(crc ^ p[0], 15) ^ ln_crc_part(p[1], 11) ^ ln_crc_part(p[2], 7) ^ ln_crc_part(p[3], 3);
}

/* Of len bytes, a multiple of four, at off in the packet's linear data. The tail is as in ln_csum_packet(). */
LN_GLOBAL __u32 ln_crc_linear(struct xdp_md *ctx, __u32 off, __u32 len, __u32 crc)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *tail;
	__u32 steps = len / LN_CRC_STEP, rest = len % LN_CRC_STEP;

	if (off > 0xff || steps > (LN_ROCE_MAX_MTU + 64) / LN_CRC_STEP)
		return 0;
	data += off;
	tail = data + steps * LN_CRC_STEP;
	for (__u32 i = 0; i < (LN_ROCE_MAX_MTU + 64) / LN_CRC_STEP; i++) {
		if (i >= steps || data + LN_CRC_STEP > end)
			break;
		crc = ln_crc_step(crc, data);
		data += LN_CRC_STEP;
	}
	for (int i = 0; i < 3; i++) {
		if (rest < 4 || tail + 4 > end)
			break;
		crc = ln_crc_word(crc, *(__u32 *)tail);
		tail += 4;
		rest -= 4;
	}
	return crc;
}

/* Of the first n bytes of this CPU's buffer. */
LN_GLOBAL __u32 ln_crc_buffer(__u32 n, __u32 crc)
{
	__u32 zero = 0, at = 0;
	struct ln_rdma_scratch *scratch = bpf_map_lookup_elem(&ln_rdma_scratchpads, &zero);

	if (!scratch)
		return 0;
	for (int i = 0; i < LN_CRC_CHUNK / LN_CRC_STEP && at + LN_CRC_STEP <= n; i++, at += LN_CRC_STEP)
		crc = ln_crc_step(crc, (__u32 *)(scratch->chunk + i * LN_CRC_STEP));
	for (int i = 0; i < 3 && at + 4 <= n; i++, at += 4)
		crc = ln_crc_word(crc, *(__u32 *)(scratch->chunk + (at & (LN_CRC_CHUNK - 4))));
	return crc;
}

/* Of a packet in several fragments, through that buffer. */
LN_GLOBAL __u32 ln_crc_chunks(struct xdp_md *ctx, __u32 off, __u32 len, __u32 crc)
{
	__u32 zero = 0, n;
	struct ln_rdma_scratch *scratch = bpf_map_lookup_elem(&ln_rdma_scratchpads, &zero);

	if (!scratch)
		return 0;
	for (int i = 0; i <= (LN_ROCE_MAX_MTU + 64) / LN_CRC_CHUNK && len; i++) {
		n = len < LN_CRC_CHUNK ? len : LN_CRC_CHUNK;
		if (!ln_length_fits(n, LN_CRC_CHUNK) || bpf_xdp_load_bytes(ctx, off, scratch->chunk, n))
			return 0;
		crc = ln_crc_buffer(n, crc);
		off += n;
		len -= n;
	}
	return crc;
}

/* The masks are of words as x86-64 loads them, lowest byte first. */
static __always_inline __u32 ln_crc_ipv4(__u32 crc, const __u32 *ip)
{
	crc = ln_crc_word(crc, ip[0] | 0xff00); /* type of service */
	crc = ln_crc_word(crc, ip[1]);
	crc = ln_crc_word(crc, ip[2] | 0xffff00ff); /* time to live, checksum */
	crc = ln_crc_word(crc, ip[3]);
	return ln_crc_word(crc, ip[4]);
}

static __always_inline __u32 ln_crc_ipv6(__u32 crc, const __u32 *ip)
{
	crc = ln_crc_word(crc, ip[0] | 0xffffff0f); /* traffic class, flow label */
	crc = ln_crc_word(crc, ip[1] | 0xff000000); /* hop limit */
	crc = ln_crc_step(crc, ip + 2);
	return ln_crc_step(crc, ip + 6);
}

/* The ICRC, in memory order, of the packet whose IP header is at l3 and whose UDP datagram has udp_len bytes; 0 for none. */
LN_GLOBAL __u32 ln_icrc(struct xdp_md *ctx, __u32 l3, __u32 ipv6, __u32 udp_len)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 crc = LN_ROCE_CRC_SEED, at = l3 + ln_l3_len(ipv6), len;
	const __u32 *udp;

	if (l3 > 0x7f || udp_len < sizeof(struct udphdr) + LN_ROCE_BTH_LEN + LN_ROCE_ICRC_LEN)
		return 0;
	data += l3;
	if (ipv6) {
		if (data + sizeof(struct ipv6hdr) > end)
			return 0;
		crc = ln_crc_ipv6(crc, data);
		udp = data + sizeof(struct ipv6hdr);
	} else {
		if (data + sizeof(struct iphdr) > end)
			return 0;
		crc = ln_crc_ipv4(crc, data);
		udp = data + sizeof(struct iphdr);
	}
	if ((void *)(udp + 5) > end)
		return 0;
	crc = ln_crc_word(crc, udp[0]);
	crc = ln_crc_word(crc, udp[1] | 0xffff0000); /* checksum */
	crc = ln_crc_word(crc, udp[2]);
	crc = ln_crc_word(crc, udp[3] | 0xff); /* congestion notification */
	crc = ln_crc_word(crc, udp[4]);
	at += sizeof(struct udphdr) + LN_ROCE_BTH_LEN;
	len = udp_len - sizeof(struct udphdr) - LN_ROCE_BTH_LEN - LN_ROCE_ICRC_LEN;
	data = (void *)(long)ctx->data;
	if (data + at + len > end)
		return ~ln_crc_chunks(ctx, at, len, crc);
	return ~ln_crc_linear(ctx, at, len, crc);
}

#endif
