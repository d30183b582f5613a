/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RoCEv2's packets: parsing the headers behind UDP's, and turning a packet into its acknowledgement. */
#ifndef LN_ROCE_H
#define LN_ROCE_H

#include "icrc.h"

static __always_inline int ln_roce_has_reth(__u32 op)
{
	return op == LN_ROCE_OP_WRITE_FIRST || op == LN_ROCE_OP_WRITE_ONLY || op == LN_ROCE_OP_WRITE_ONLY_IMM;
}

static __always_inline int ln_roce_has_imm(__u32 op)
{
	return op == LN_ROCE_OP_SEND_LAST_IMM || op == LN_ROCE_OP_SEND_ONLY_IMM || op == LN_ROCE_OP_WRITE_LAST_IMM ||
	       op == LN_ROCE_OP_WRITE_ONLY_IMM;
}

static __always_inline int ln_roce_is_write(__u32 op)
{
	return op >= LN_ROCE_OP_WRITE_FIRST;
}

static __always_inline int ln_roce_begins(__u32 op)
{
	return op == LN_ROCE_OP_SEND_FIRST || op == LN_ROCE_OP_SEND_ONLY || op == LN_ROCE_OP_SEND_ONLY_IMM ||
	       op == LN_ROCE_OP_WRITE_FIRST || op == LN_ROCE_OP_WRITE_ONLY || op == LN_ROCE_OP_WRITE_ONLY_IMM;
}

static __always_inline int ln_roce_ends(__u32 op)
{
	return op != LN_ROCE_OP_SEND_FIRST && op != LN_ROCE_OP_SEND_MIDDLE && op != LN_ROCE_OP_WRITE_FIRST &&
	       op != LN_ROCE_OP_WRITE_MIDDLE;
}

static __always_inline void ln_roce_read_reth(const __be32 *word, struct ln_roce *roce)
{
	roce->va = (__u64)bpf_ntohl(word[0]) << 32 | bpf_ntohl(word[1]);
	roce->key = bpf_ntohl(word[2]);
	roce->dma_len = bpf_ntohl(word[3]);
}

/* Reads the headers behind the BTH, and finds the payload; -1 where they contradict each other. */
static __always_inline int ln_roce_parse_rest(void *data, void *end, struct ln_roce *roce, __u32 pad, __u32 len)
{
	const __be32 *word = data;
	__u32 head = LN_ROCE_BTH_LEN;

	if (ln_roce_has_reth(roce->op)) {
		if ((void *)(word + 4) > end)
			return -1;
		ln_roce_read_reth(word, roce);
		word += 4;
		head += LN_ROCE_RETH_LEN;
	}
	if (ln_roce_has_imm(roce->op)) {
		if ((void *)(word + 1) > end)
			return -1;
		roce->imm = bpf_ntohl(*word);
		head += LN_ROCE_IMM_LEN;
	}
	if (len < head + pad + LN_ROCE_ICRC_LEN)
		return -1;
	roce->payload = roce->at + head;
	roce->length = len - head - pad - LN_ROCE_ICRC_LEN;
	return len & 3 ? -1 : 0;
}

/* Reads the transport headers; -1 for a packet that is not ours. */
static __always_inline int ln_roce_parse(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_roce *roce)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 at = pkt->l4 + sizeof(struct udphdr), len = pkt->udp_len - sizeof(struct udphdr), word;
	const __be32 *bth = data + at;

	if (at > 0xff || (void *)(bth + 3) > end || len < LN_ROCE_BTH_LEN + LN_ROCE_ICRC_LEN)
		return -1;
	word = bpf_ntohl(bth[0]);
	roce->at = at;
	roce->op = word >> 24 & 0x1f;
	roce->service = word >> 24 & 0xe0;
	roce->qpn = bpf_ntohl(bth[1]) & LN_ROCE_NUM_MASK;
	roce->ack = bpf_ntohl(bth[2]) >> 31;
	roce->psn = bpf_ntohl(bth[2]) & LN_ROCE_NUM_MASK;
	roce->imm = 0;
	roce->malformed = word >> 16 & 0xf /* version */ || (word & 0x7fff) != (LN_ROCE_P_KEY & 0x7fff) ||
			  ln_roce_parse_rest((void *)(bth + 3), end, roce, word >> 20 & 3, len);
	return 0;
}

/* Makes the packet exactly len bytes long, whatever they hold. */
static __always_inline int ln_roce_resize(struct xdp_md *ctx, __u32 len)
{
	int spare = (int)bpf_xdp_get_buff_len(ctx) - (int)len;

	/* Packets of local sockets can grow only at the head. */
	if (spare < 0)
		return bpf_xdp_adjust_head(ctx, spare);
	return spare ? bpf_xdp_adjust_tail(ctx, -spare) : 0;
}

/* Writes an acknowledgement's transport headers, without the ICRC. */
static __always_inline void ln_roce_write(__be32 *word, __u32 service, const struct ln_qp *qp, __u32 psn, __u32 aeth)
{
	word[0] = bpf_htonl((service | LN_ROCE_OP_ACK) << 24 | LN_ROCE_P_KEY);
	word[1] = bpf_htonl(qp->peer_qpn);
	word[2] = bpf_htonl(psn);
	word[3] = bpf_htonl(aeth);
}

/* Turns the packet at hand into an acknowledgement. Returns the XDP action. */
LN_GLOBAL int ln_roce_answer(struct xdp_md *ctx, struct ln_flow *flow, const struct ln_qp *qp, __u32 psn, __u32 aeth)
{
	__u32 l2_len, l3_len, icrc,
		udp_len = sizeof(struct udphdr) + LN_ROCE_BTH_LEN + LN_ROCE_AETH_LEN + LN_ROCE_ICRC_LEN;
	void *data, *end, *l3;
	struct udphdr *udp;

	if (!flow || !qp)
		return XDP_DROP;
	l2_len = ln_l2_len(flow);
	l3_len = ln_l3_len(flow->ipv6);
	if (ln_roce_resize(ctx, l2_len + l3_len + udp_len))
		return XDP_DROP;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	l3 = ln_write_l2(data, end, flow);
	if (!l3 || l3 + sizeof(struct ipv6hdr) > end)
		return XDP_DROP;
	/* Copies the request's class of service, but not its congestion marks (RFC 3168 section 5). */
	if (flow->ipv6)
		ln_write_ipv6(l3, flow->own_addr, flow->peer_addr, flow->flow_label & bpf_htonl(~(3U << 20)), udp_len);
	else
		ln_write_ipv4(l3, *(__be32 *)flow->own_addr, *(__be32 *)flow->peer_addr, flow->tos & ~3, udp_len);
	udp = l3 + l3_len;
	if ((void *)udp + sizeof(*udp) + LN_ROCE_BTH_LEN + LN_ROCE_AETH_LEN + LN_ROCE_ICRC_LEN > end)
		return XDP_DROP;
	/* Always the same for a queue pair, so that its packets stay in order (annex A17.9.2). */
	udp->source = bpf_htons(0xc000 | ((qp->qpn ^ qp->peer_qpn) & 0x3fff));
	udp->dest = bpf_htons(LN_ROCE_PORT);
	udp->len = bpf_htons(udp_len);
	udp->check = 0;
	ln_roce_write((void *)(udp + 1), qp->service, qp, psn, aeth);
	icrc = ln_icrc(ctx, l2_len, flow->ipv6, udp_len);
	if (bpf_xdp_store_bytes(ctx, l2_len + l3_len + udp_len - LN_ROCE_ICRC_LEN, &icrc, sizeof(icrc)))
		return XDP_DROP;
	if (flow->ipv6 && ln_finish_ipv6(ctx, flow->own_addr, flow->peer_addr, l2_len + l3_len, udp_len))
		return XDP_DROP;
	return XDP_TX;
}

#endif
