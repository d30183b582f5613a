/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a lambda, and turns its verdict into an XDP action. The lambda is a program of its own, reached by a tail call from
 * within run_lambda() (run.h), so that control comes back here and no lambda can skip the epilogue.
 */
#ifndef LN_EPILOGUE_H
#define LN_EPILOGUE_H

#include "admit.h"
#include "calls/begin.h"
#include "run.h"

/* Answers the packet at hand with an error. message_len is the room that a reply would have needed, the fault, or 0. */
LN_GLOBAL int ln_refuse(struct xdp_md *ctx, struct ln_scratch *scratch, __u32 code, __u32 message_len)
{
	struct ln_answer answer = { .type = LN_TYPE_ERROR, .code = code, .count = 1, .message_len = message_len };
	__u32 at, end = bpf_xdp_get_buff_len(ctx);

	if (!scratch)
		return XDP_DROP;
	at = ln_l2_len(&scratch->flow) + ln_l3_len(scratch->flow.ipv6) + sizeof(struct udphdr) + sizeof(struct ln_rpc);
	/* A service's packet may be shorter than our headers. */
	return ln_answer(ctx, &scratch->flow, at < end ? at : end, &answer);
}

/* The same on behalf of a lambda, in whose counters it is counted. */
LN_GLOBAL int ln_refuse_for(struct xdp_md *ctx, struct ln_scratch *scratch, __u32 code, __u32 message_len)
{
	struct ln_stats *stats;
	__u32 slot;

	if (!scratch)
		return XDP_DROP;
	slot = scratch->slot;
	stats = bpf_map_lookup_elem(&ln_slot_stats, &slot);
	if (code == LN_CODE_LAMBDA_FAULT && !message_len)
		message_len = LN_FAULT_OWN;
	if (stats) {
		stats->errors++;
		if (code == LN_CODE_LAMBDA_FAULT) {
			stats->faults++;
			stats->faults_by[message_len & (LN_FAULTS - 1)]++;
		}
	}
	if (code == LN_CODE_BUSY)
		ln_count(LN_COUNT_BUSY);
	if (code == LN_CODE_MALFORMED)
		ln_count(LN_COUNT_MALFORMED);
	return ln_refuse(ctx, scratch, code, message_len);
}

/* Refuses a packet of a message that is not begun. As with requests, only the first packet is counted; all are refused. */
static __always_inline int ln_refuse_message(struct xdp_md *ctx, struct ln_scratch *scratch, __u32 code)
{
	if (!scratch->place.part.index)
		return ln_refuse_for(ctx, scratch, code, 0);
	if (code == LN_CODE_BUSY)
		ln_count(LN_COUNT_BUSY);
	return ln_refuse(ctx, scratch, code, 0);
}

/* Sends what the lambda described as its reply. */
LN_GLOBAL int ln_forward(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
			 const struct ln_slot *slot)
{
	struct ln_answer answer = { .type = LN_TYPE_RESPONSE, .count = 1 };
	struct ln_asked asked = {};
	__u32 len, total, index;
	const struct ln_rpc *rpc;
	struct ln_stats *stats;
	int action;

	if (!scratch || !req || !slot)
		return XDP_DROP;
	len = req->out_len;
	total = req->out_total;
	rpc = (const struct ln_rpc *)scratch->flow.rpc;
	answer.code = req->out_status;
	answer.length = len;
	answer.revision = slot->revision;
	answer.message_len = total;
	index = scratch->slot;
	stats = bpf_map_lookup_elem(&ln_slot_stats, &index);
	if (len > scratch->flow.room || len > LN_RPC_MAX_PAYLOAD)
		return ln_refuse_for(ctx, scratch, LN_CODE_TOO_LARGE, len > LN_RPC_MAX_PAYLOAD ? 0 : len);
	asked.index = bpf_ntohl(rpc->index);
	asked.count = bpf_ntohl(rpc->count);
	asked.window = req->match.window;
	asked.step = req->match.window_len;
	asked.type = rpc->type;
	asked.part = req->match.event == LAMBDA_EVENT_FRAGMENT;
	if (scratch->flow.once && total > len) /* the further packets would be further runs */
		return ln_refuse_for(ctx, scratch, LN_CODE_TOO_LARGE, 0);
	if (ln_answer_number(&answer, &asked))
		return ln_refuse_for(ctx, scratch, LN_CODE_TOO_LARGE, total);
	if (req->out_off < -LN_PREFIX)
		return ln_refuse_for(ctx, scratch, LN_CODE_LAMBDA_FAULT, 0);
	action = ln_answer(ctx, &scratch->flow, req->payload_off + req->out_off, &answer);
	if (action != XDP_TX) /* the lambda described bytes that the packet does not have */
		return ln_refuse_for(ctx, scratch, LN_CODE_LAMBDA_FAULT, 0);
	if (stats) {
		stats->replies += !answer.index && rpc->type == LN_TYPE_REQUEST && !req->match.repeat;
		stats->bytes_out += len;
	}
	return action;
}

/* The epilogue: turns whatever the lambda returned into an action. */
static __always_inline int ln_epilogue(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
				       const struct ln_slot *slot, int verdict)
{
	struct ln_stats *stats;
	int action;

	switch (verdict) {
	case LN_VERDICT_FORWARD:
		return ln_forward(ctx, scratch, req, slot);
	case LN_VERDICT_CALL:
		action = ln_call_begin(ctx, &scratch->flow, req, scratch->slot, slot);
		if (action < 0)
			return ln_refuse_for(ctx, scratch, -action, 0);
		stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);
		if (stats)
			stats->calls++;
		return action;
	case LN_VERDICT_DROP:
		stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);
		if (stats)
			stats->drops++;
		if (scratch->flow.once)
			ln_once_release(&scratch->flow, 1);
		return XDP_DROP;
	}
	return ln_refuse_for(ctx, scratch, LN_CODE_LAMBDA_FAULT, ln_fault_of(verdict));
}

/* Runs the lambda in scratch->slot on the packet at hand, measures one of LN_SAMPLE_EVERY runs, and charges the lambda's namespace. */
static __noinline int ln_run(struct xdp_md *ctx, struct ln_scratch *scratch)
{
	__u32 slot = scratch->slot, payer = ln_payer(slot);
	int sample = ln_is_sample(&scratch->sampler), verdict;
	__u64 began = sample || (payer && ln_is_new(slot)) ? bpf_ktime_get_ns() : 0, ns = 0;
	struct ln_stats *stats;

	verdict = run_lambda(ctx, slot);
	if (began)
		ns = bpf_ktime_get_ns() - began;
	if (sample) {
		stats = bpf_map_lookup_elem(&ln_slot_stats, &slot);
		if (stats)
			ln_sampled(stats, ns);
	}
	if (payer)
		ln_charge_slot(payer, slot, ns);
	return verdict;
}

/*
 * Hands the lambda a packet to take in, or a packet of its reply to fill. In mode assemble its program only copies the bytes: the
 * author's function does not run, and no time is measured.
 */
static __always_inline int ln_run_or_copy(struct xdp_md *ctx, struct ln_scratch *scratch, const struct ln_slot *slot)
{
	return slot->mode == LN_MODE_ASSEMBLE ? run_lambda(ctx, scratch->slot) : ln_run(ctx, scratch);
}

#endif
