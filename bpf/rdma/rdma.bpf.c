// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * RDMA into lambdas' memory: the responder's half of RoCEv2 queue pairs, reliable and unreliable, for SEND and WRITE (InfiniBand
 * specification, chapter 9). A lambda runs on what was written when immediate data, a SEND, or a λ-RPC that names the region
 * arrives (the λ-NIC paper, section 4.2.1, D3).
 *
 * The lambda's own program copies the bytes, as it alone can access its memory. This module has checked the packet before.
 */
#include "../match.h"
#include "region.h"
#include "roce.h"

/* Each step of a packet's processing returns the syndrome to answer with, or one of these. */
enum { LN_RDMA_GO = -1, LN_RDMA_DROP = -2 };

#define LN_RNR_TIMER 1 /* 10 µs (InfiniBand specification, table 45) */

/* The order of packets. */
static __always_inline int ln_rdma_sequence(struct ln_qp *qp, const struct ln_roce *roce)
{
	__u32 ahead = (roce->psn - qp->psn) & LN_ROCE_NUM_MASK;

	if (!ahead)
		return LN_RDMA_GO;
	if (qp->service == LN_ROCE_SERVICE_UC) {
		/* The message that misses a packet is lost; a new one may begin anywhere (9.8.2.2.1). */
		qp->message = LN_QP_IDLE;
		if (!ln_roce_begins(roce->op))
			return LN_RDMA_DROP;
		qp->psn = roce->psn;
		return LN_RDMA_GO;
	}
	if (ahead >= LN_ROCE_NUM_HALF) {
		qp->repeated++;
		return roce->ack ? LN_ROCE_SYNDROME_ACK : LN_RDMA_DROP;
	}
	/* Told once, till the missing one comes (9.7.5.2.8). */
	if (qp->naked)
		return LN_RDMA_DROP;
	qp->naked = 1;
	return LN_ROCE_SYNDROME_SEQUENCE;
}

/* Whether the operation may follow the packets before it, with a payload of that length. */
static __always_inline int ln_rdma_operation(struct ln_qp *qp, const struct ln_roce *roce)
{
	__u32 kind = ln_roce_is_write(roce->op) ? LN_QP_WRITE : LN_QP_SEND;
	int begins = ln_roce_begins(roce->op), ends = ln_roce_ends(roce->op);

	if (roce->op > LN_ROCE_OP_WRITE_ONLY_IMM)
		return LN_ROCE_SYNDROME_INVALID_REQUEST;
	if (begins && qp->message != LN_QP_IDLE && qp->service == LN_ROCE_SERVICE_RC)
		return LN_ROCE_SYNDROME_INVALID_REQUEST;
	if (!begins && qp->message != kind)
		return LN_ROCE_SYNDROME_INVALID_REQUEST;
	if (roce->length > qp->mtu || (!ends && roce->length != qp->mtu) || (!begins && ends && !roce->length))
		return LN_ROCE_SYNDROME_INVALID_REQUEST;
	return LN_RDMA_GO;
}

/* Where a message's bytes go, as its first packet says. */
static __always_inline int ln_rdma_begin(struct ln_qp *qp, const struct ln_roce *roce)
{
	struct ln_region *region;
	__u32 key = qp->receive;

	if (ln_roce_is_write(roce->op)) {
		qp->left = roce->dma_len;
		qp->at = 0;
		if (!roce->dma_len) /* no bytes, no key (9.7.4.1.2) */
			return LN_RDMA_GO;
		key = roce->key;
	}
	region = ln_region_of(key, qp->workload);
	if (!region)
		return ln_roce_is_write(roce->op) ? LN_ROCE_SYNDROME_ACCESS : LN_ROCE_SYNDROME_INVALID_REQUEST;
	qp->key = key;
	if (!ln_roce_is_write(roce->op)) {
		qp->left = region->length;
		qp->at = 0;
		return LN_RDMA_GO;
	}
	if (roce->va < region->base || roce->va - region->base > region->length ||
	    roce->dma_len > region->length - (roce->va - region->base))
		return LN_ROCE_SYNDROME_ACCESS;
	qp->at = roce->va - region->base;
	return LN_RDMA_GO;
}

/* Whether the message has as many bytes as its first packet said; a SEND, no more than there is room for. */
static __always_inline int ln_rdma_amount(const struct ln_qp *qp, const struct ln_roce *roce)
{
	if (roce->length > qp->left)
		return LN_ROCE_SYNDROME_INVALID_REQUEST;
	if (!ln_roce_is_write(roce->op) || (roce->length == qp->left) == ln_roce_ends(roce->op))
		return LN_RDMA_GO;
	return LN_ROCE_SYNDROME_INVALID_REQUEST;
}

/* Has the lambda take the payload in. */
static __always_inline int ln_rdma_copy(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					const struct ln_roce *roce, const struct ln_qp *qp,
					const struct ln_region *region, const struct ln_slot *slot)
{
	__u32 total = qp->at + roce->length;
	struct ln_stats *stats;

	scratch->slot = region->slot;
	stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);
	if (stats)
		stats->bytes_in += roce->length;
	if (ln_roce_is_write(roce->op))
		total = qp->at + qp->left;
	ln_region_describe(req, region, qp->at, roce->length, total);
	req->match.event = LAMBDA_EVENT_FRAGMENT;
	req->step = LN_STEP_COPY;
	req->payload_off = roce->payload;
	return ln_run_or_copy(ctx, scratch, slot) == LN_VERDICT_KEEP ? LN_RDMA_GO : LN_ROCE_SYNDROME_OPERATION;
}

/* Takes in a packet that is in order, and has the lambda run where it says so. */
LN_GLOBAL int ln_rdma_execute(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req, struct ln_qp *qp,
			      const struct ln_roce *roce)
{
	const struct ln_slot *slot = NULL;
	struct ln_region *region = NULL;
	int step, event;
	__u32 length;

	if (!scratch || !req || !qp || !roce)
		return LN_RDMA_DROP;
	event = ln_roce_has_imm(roce->op) || (!ln_roce_is_write(roce->op) && ln_roce_ends(roce->op));
	step = ln_rdma_operation(qp, roce);
	if (step == LN_RDMA_GO && ln_roce_begins(roce->op))
		step = ln_rdma_begin(qp, roce);
	if (step == LN_RDMA_GO)
		step = ln_rdma_amount(qp, roce);
	if (step != LN_RDMA_GO)
		return step;
	if (roce->length || event) {
		/* A region may be revoked in the middle of a message. Immediate data without bytes is for the region of the message before. */
		region = ln_region_of(qp->key ? qp->key : qp->receive, qp->workload);
		slot = region ? ln_region_slot(region) : NULL;
		if (!slot || ln_is_guarded(slot)) /* RoCEv2 has no tags, and is in no network */
			return LN_ROCE_SYNDROME_ACCESS;
		if (event && !ln_claim(&region->claim))
			return LN_ROCE_SYNDROME_RNR | LN_RNR_TIMER;
	}
	if (roce->length)
		step = ln_rdma_copy(ctx, scratch, req, roce, qp, region, slot);
	if (step == LN_RDMA_GO) {
		qp->at += roce->length;
		qp->left -= roce->length;
		if (region && ln_roce_is_write(roce->op))
			ln_region_extend(region, qp->at);
	}
	if (!event || !region)
		return step;
	if (step == LN_RDMA_GO) {
		length = ln_region_take(region);
		if (!ln_roce_is_write(roce->op))
			length = qp->at;
		ln_region_describe(req, region, 0, length, length);
		if (ln_roce_has_imm(roce->op))
			req->match.method = roce->imm;
		req->payload_off =
			roce->at; /* in mode stream the lambda makes its reply in this packet; the reply is not sent */
		region->request = 0;
		region->peer = 0;
		ln_region_run(ctx, scratch, req, region);
	}
	ln_unclaim(&region->claim);
	return step;
}

/* How to answer the packet: a syndrome, or LN_RDMA_DROP. The queue pair is claimed. */
static __always_inline int ln_rdma_take(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					struct ln_qp *qp, const struct ln_roce *roce)
{
	int step;

	if (*(volatile __u32 *)&qp->state != LN_QP_READY) {
		qp->dropped++;
		return LN_RDMA_DROP;
	}
	step = ln_rdma_sequence(qp, roce);
	if (step != LN_RDMA_GO) {
		qp->dropped++;
		return step;
	}
	step = ln_rdma_execute(ctx, scratch, req, qp, roce);
	if (step != LN_RDMA_GO) {
		if (step < 0 || (step & 0xe0) == LN_ROCE_SYNDROME_RNR)
			return step;
		qp->message = LN_QP_IDLE;
		qp->dropped++;
		if (qp->service == LN_ROCE_SERVICE_UC)
			return LN_RDMA_DROP;
		__sync_val_compare_and_swap(&qp->state, LN_QP_READY, LN_QP_ERROR); /* unless the host took it away */
		return step;
	}
	qp->naked = 0;
	qp->psn = (qp->psn + 1) & LN_ROCE_NUM_MASK;
	qp->message = ln_roce_ends(roce->op) ? LN_QP_IDLE : ln_roce_is_write(roce->op) ? LN_QP_WRITE : LN_QP_SEND;
	qp->packets++;
	qp->bytes += roce->length;
	if (ln_roce_ends(roce->op)) {
		qp->msn = (qp->msn + 1) & LN_ROCE_NUM_MASK;
		qp->messages++;
	}
	return roce->ack && qp->service == LN_ROCE_SERVICE_RC ? LN_ROCE_SYNDROME_ACK : LN_RDMA_DROP;
}

/* The PSN of an answer: of the packet that is missing, that was refused, or that arrived last. */
static __always_inline __u32 ln_rdma_answer_psn(const struct ln_qp *qp, __u32 syndrome)
{
	return syndrome == LN_ROCE_SYNDROME_ACK ? (qp->psn - 1) & LN_ROCE_NUM_MASK : qp->psn;
}

/* True for an intact packet from this queue pair's peer. */
static __always_inline int ln_rdma_is_valid(struct xdp_md *ctx, const struct ln_packet *pkt, const struct ln_flow *flow,
					    const struct ln_roce *roce, const struct ln_qp *qp)
{
	const __u64 *peer = (const __u64 *)qp->peer_addr, *from = (const __u64 *)flow->peer_addr;
	__u32 icrc, at = pkt->l4 + pkt->udp_len - LN_ROCE_ICRC_LEN;

	if (peer[0] != from[0] || peer[1] != from[1] || qp->ipv6 != flow->ipv6) {
		ln_count(LN_COUNT_ALIEN);
		return 0;
	}
	if (roce->malformed || roce->service != qp->service) {
		ln_count(LN_COUNT_MALFORMED);
		return 0;
	}
	if (qp->trust)
		return 1;
	if (bpf_xdp_load_bytes(ctx, at, &icrc, sizeof(icrc)) ||
	    icrc != ln_icrc(ctx, pkt->l3, flow->ipv6, pkt->udp_len)) {
		ln_count(LN_COUNT_CHECKSUM);
		return 0;
	}
	return 1;
}

/* The queue pair that a datagram to RoCEv2's port is for; NULL where it may be for the host. */
static __always_inline struct ln_qp *ln_rdma_find(struct xdp_md *ctx, const struct ln_packet *pkt)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 at = pkt->l4 + sizeof(struct udphdr), qpn, index;
	const __be32 *bth = data + at;
	struct ln_qp *qp;

	if (at > 0xff || (void *)(bth + 3) > end)
		return NULL;
	qpn = bpf_ntohl(bth[1]) & LN_ROCE_NUM_MASK;
	index = qpn & (LN_MAX_QPS - 1);
	qp = bpf_map_lookup_elem(&ln_qps, &index);
	return qp && *(volatile __u32 *)&qp->state != LN_QP_NONE && qp->qpn == qpn ? qp : NULL;
}

/* A packet for a queue pair. Returns the XDP action. */
static __always_inline int ln_rdma_packet(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_qp *qp,
					  struct ln_scratch *scratch, struct ln_request *req, struct ln_roce *roce)
{
	__u32 psn, msn;
	int step;

	if (ln_roce_parse(ctx, pkt, roce) || ln_save_flow(ctx, pkt, &scratch->flow) || !ln_is_ours(&scratch->flow) ||
	    pkt->l4 - pkt->l3 != ln_l3_len(scratch->flow.ipv6))
		return XDP_PASS;
	if (ln_network_owner(ctx, pkt)) { /* that namespace has no RDMA, and others have no such network */
		ln_count(LN_COUNT_NETWORK);
		return XDP_DROP;
	}
	if (!ln_rdma_is_valid(ctx, pkt, &scratch->flow, roce, qp) || roce->op == LN_ROCE_OP_ACK)
		return XDP_DROP;
	/* While another CPU works on a packet of this queue pair, this one counts as lost: it would overtake the other. */
	if (!ln_claim(&qp->claim))
		return XDP_DROP;
	step = ln_rdma_take(ctx, scratch, req, qp, roce);
	if (step >= 0 && step != LN_ROCE_SYNDROME_ACK)
		qp->naks++;
	psn = ln_rdma_answer_psn(qp, step);
	msn = qp->msn;
	ln_unclaim(&qp->claim);
	if (step == LN_RDMA_DROP)
		return XDP_DROP;
	return ln_roce_answer(ctx, &scratch->flow, qp, psn, (__u32)step << 24 | msn);
}

/* A datagram to RoCEv2's port. */
SEC("xdp.frags")
int ln_rdma_module(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct ln_scratch *scratch = bpf_map_lookup_elem(&ln_scratchpads, &zero);
	struct ln_rdma_scratch *rdma = bpf_map_lookup_elem(&ln_rdma_scratchpads, &zero);
	struct ln_request *req = bpf_map_lookup_elem(&ln_requests, &zero);
	struct ln_packet pkt;
	struct ln_qp *qp;

	if (!scratch || !rdma || !req || ln_parse(ctx, &pkt))
		return XDP_PASS;
	qp = ln_rdma_find(ctx, &pkt);
	return qp ? ln_rdma_packet(ctx, &pkt, qp, scratch, req, &rdma->roce) : ln_unselected(ctx);
}

/* Whoever sent a λ-RPC, as one number. */
static __always_inline __u64 ln_peer_of(const struct ln_flow *flow)
{
	const __u64 *addr = (const __u64 *)flow->peer_addr;

	return (addr[0] * 0x9e3779b97f4a7c15ULL ^ addr[1]) * 0xbf58476d1ce4e5b9ULL ^ flow->peer_port;
}

/* Runs the lambda on the region at a λ-RPC's request, only once while that request is remembered. The region is claimed. */
static __always_inline int ln_region_event(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					   struct ln_region *region, __u32 length)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)scratch->flow.rpc;
	__u64 peer = ln_peer_of(&scratch->flow);
	const struct ln_slot *slot = ln_region_slot(region);
	__u32 window_len = req->match.window_len, room = req->match.room;
	int verdict;

	if (!slot)
		return ln_refuse_for(ctx, scratch, LN_CODE_STALE, 0);
	ln_region_describe(req, region, 0, length, length);
	req->match.method = bpf_ntohl(rpc->method);
	req->match.window_len = window_len;
	req->match.room = room;
	if (slot->mode == LN_MODE_ASSEMBLE && region->answered && region->request == rpc->request &&
	    region->peer == peer) {
		req->match.repeat = 1;
		req->out_total = region->reply_len;
		req->out_status = region->status;
		req->step = LN_STEP_PULL;
		scratch->slot = region->slot;
		return ln_epilogue(ctx, scratch, req, slot, run_lambda(ctx, scratch->slot));
	}
	ln_region_take(region);
	verdict = ln_region_run(ctx, scratch, req, region);
	region->request = rpc->request;
	region->peer = peer;
	return ln_epilogue(ctx, scratch, req, slot, verdict);
}

/* A pull: sends a packet of the region's reply. */
static __always_inline int ln_region_pull(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					  struct ln_region *region)
{
	const struct ln_slot *slot = ln_region_slot(region);

	if (!slot || slot->mode != LN_MODE_ASSEMBLE || (!region->answered && !region->code))
		return ln_refuse_for(ctx, scratch, LN_CODE_STALE, 0);
	if (!region->answered)
		return ln_refuse_for(ctx, scratch, region->code, region->fault);
	scratch->slot = region->slot;
	req->match.revision = region->revision;
	req->match.record = region->record;
	req->out_total = region->reply_len;
	req->out_status = region->status;
	req->step = LN_STEP_PULL;
	return ln_epilogue(ctx, scratch, req, slot, run_lambda(ctx, scratch->slot));
}

/* A λ-RPC whose payload names a region, as an RETH does: address, key, length. */
static __always_inline int ln_region_packet(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					    struct ln_rdma_scratch *rdma)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)scratch->flow.rpc;
	struct ln_region *region;
	int action;

	if (rpc->length != bpf_htons(LN_ROCE_RETH_LEN) ||
	    bpf_xdp_load_bytes(ctx, req->payload_off, rdma->chunk, LN_ROCE_RETH_LEN))
		return ln_refuse_for(ctx, scratch, LN_CODE_STALE, 0);
	ln_roce_read_reth((const __be32 *)rdma->chunk, &rdma->roce);
	region = ln_region_of(rdma->roce.key, bpf_ntohl(rpc->workload));
	if (!region || rdma->roce.va != region->base || rdma->roce.dma_len > region->length)
		return ln_refuse_for(ctx, scratch, LN_CODE_STALE, 0);
	if (!ln_claim(&region->claim))
		return ln_refuse_for(ctx, scratch, LN_CODE_BUSY, 0);
	if (rpc->type == LN_TYPE_PULL)
		action = ln_region_pull(ctx, scratch, req, region);
	else
		action = ln_region_event(ctx, scratch, req, region, rdma->roce.dma_len);
	ln_unclaim(&region->claim);
	return action;
}

SEC("xdp.frags")
int ln_regions_module(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct ln_scratch *scratch = bpf_map_lookup_elem(&ln_scratchpads, &zero);
	struct ln_rdma_scratch *rdma = bpf_map_lookup_elem(&ln_rdma_scratchpads, &zero);
	struct ln_request *req = bpf_map_lookup_elem(&ln_requests, &zero);

	return scratch && rdma && req ? ln_region_packet(ctx, scratch, req, rdma) : XDP_DROP;
}

/* Named here so that BTF, and the Go types made from it, have it. */
const enum ln_qp_state *ln_qp_state_ __attribute__((unused));
