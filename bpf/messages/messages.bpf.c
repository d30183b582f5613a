// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * Messages of several packets, and in mode assemble also those of one packet. The root hands over their packets, the pulls of their
 * replies, and the packets that say that a client has its reply.
 */
#include "../epilogue.h"
#include "grant.h"
#include "message.h"

/* How many packets of the message its client may have sent by now. */
LN_GLOBAL __u32 ln_grant(const struct ln_place *p, const struct ln_progress *progress)
{
	__u32 zero = 0, message, rank;
	struct ln_grants *g = bpf_map_lookup_elem(&ln_granting, &zero);

	if (!g || !p || !progress || !progress->bitmap)
		return 0;
	message = 1 + p->bucket * LN_MESSAGE_WAYS + p->way;
	rank = ln_grant_rank(g, message, progress->left, p->now);
	/* Beyond the last packet in the bitmap, so that the client has more to send whatever the bitmap confirms. */
	return (p->part.index & ~63U) + ln_log2(progress->bitmap) + 1 + ln_grant_window(rank);
}

/* Acknowledges a packet that the lambda took in, with the bitmap around it, if the client asked for that. */
LN_GLOBAL int ln_acknowledge(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
			     const struct ln_progress *progress, const struct ln_slot *slot)
{
	struct ln_answer answer = { .type = LN_TYPE_ACK, .length = sizeof(progress->bitmap) };
	const struct ln_rpc *rpc;
	__u64 bitmap;

	if (!scratch || !req || !slot || !progress)
		return XDP_DROP;
	bitmap = progress->bitmap;
	rpc = (const struct ln_rpc *)scratch->flow.rpc;
	answer.revision = slot->revision;
	answer.index = bpf_ntohl(rpc->index);
	answer.count = bpf_ntohl(rpc->count);
	answer.message_len = bpf_ntohl(rpc->message_len);
	if (!(rpc->flags & LN_FLAG_ACK_WANTED))
		return XDP_DROP;
	answer.grant = ln_grant(&scratch->place, progress);
	bitmap = bpf_cpu_to_be64(bitmap);
	if (scratch->flow.room < sizeof(bitmap)) /* no amplification, not even by eight bytes */
		answer.length = 0;
	else if (bpf_xdp_store_bytes(ctx, req->payload_off, &bitmap, sizeof(bitmap)))
		return XDP_DROP;
	return ln_answer(ctx, &scratch->flow, req->payload_off, &answer);
}

/* Runs the lambda once more, on a whole message, and remembers how long its reply is. */
static __noinline int ln_run_whole(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
				   const struct ln_slot *slot, __u32 repeat)
{
	int verdict;

	req->match.event = slot->mode == LN_MODE_STREAM ? LAMBDA_EVENT_COMPLETE : LAMBDA_EVENT_REQUEST;
	req->match.repeat = repeat;
	req->step = LN_STEP_RUN;
	req->match.payload_len = req->match.message_len;
	req->match.offset = 0;
	verdict = ln_run(ctx, scratch);
	if (verdict == LN_VERDICT_DROP)
		scratch->place.error = LN_UNANSWERED;
	else if (verdict != LN_VERDICT_FORWARD)
		scratch->place.error = LN_CODE_LAMBDA_FAULT;
	if (scratch->place.error == LN_CODE_LAMBDA_FAULT)
		scratch->place.fault = ln_fault_of(verdict);
	if (!repeat)
		ln_message_finish(&scratch->place,
				  scratch->place.error && !scratch->place.once ? LN_MESSAGE_FREE : LN_MESSAGE_DONE,
				  req->out_total, req->out_status);
	return ln_epilogue(ctx, scratch, req, slot, verdict);
}

/* Sends a window of a remembered reply. */
static __always_inline int ln_recall(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
				     const struct ln_slot *slot)
{
	if (scratch->place.error == LN_UNANSWERED)
		return XDP_DROP;
	if (scratch->place.error)
		return ln_refuse_for(ctx, scratch, scratch->place.error, scratch->place.fault);
	req->step = LN_STEP_PULL;
	req->out_total = scratch->place.reply_len;
	req->out_status = scratch->place.status;
	return ln_epilogue(ctx, scratch, req, slot, ln_run_or_copy(ctx, scratch, slot));
}

/* Finds the message's record among those of the revision and of the revisions that it superseded. */
LN_GLOBAL int ln_arrive(struct ln_scratch *scratch, __u32 claim)
{
	const struct ln_slot *slot, *old;
	__u32 index, base;
	int arrival;

	if (!scratch)
		return LN_ARRIVAL_BUSY;
	index = scratch->slot;
	slot = bpf_map_lookup_elem(&ln_slots, &index);
	if (!slot)
		return LN_ARRIVAL_BUSY;
	base = slot->bucket_base;
	index = slot->prev;
	for (int i = 0; i < LN_MAX_PREV && index; i++) {
		old = bpf_map_lookup_elem(&ln_slots, &index);
		if (!old)
			break;
		index = old->prev;
		if (!old->bucket_count || (slot->bucket_count && old->bucket_base == base))
			continue;
		scratch->place.claim = claim == LN_CLAIM_BEGIN ? LN_CLAIM_ADD : claim;
		arrival = ln_message_arrive(old, &scratch->flow, &scratch->place);
		if (arrival != LN_ARRIVAL_ABSENT && arrival != LN_ARRIVAL_BUSY)
			return arrival;
	}
	if (slot->mode == LN_MODE_PACKET)
		return LN_ARRIVAL_TOO_LARGE;
	scratch->place.claim = claim;
	return ln_message_arrive(slot, &scratch->flow, &scratch->place);
}

/* A packet whose message has a record. */
static __always_inline int ln_message_serve(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					    int arrival)
{
	const struct ln_slot *slot = bpf_map_lookup_elem(&ln_slots, &scratch->slot);
	struct ln_stats *stats;
	struct ln_progress progress = {};
	int verdict;

	if (!slot)
		return XDP_DROP;
	req->match.repeat = arrival != LN_ARRIVAL_NEW;
	if (!req->match.repeat && !scratch->place.part.index) {
		stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);
		if (stats)
			stats->requests++;
	}
	if (arrival == LN_ARRIVAL_DONE && slot->mode == LN_MODE_ASSEMBLE)
		return ln_recall(ctx, scratch, req, slot);
	/* Mode stream runs a packet again when its answer may have been lost; mode assemble has copied it already. */
	req->match.event = LAMBDA_EVENT_FRAGMENT;
	req->step = LN_STEP_COPY;
	verdict = LN_VERDICT_KEEP;
	if (slot->mode == LN_MODE_STREAM || arrival == LN_ARRIVAL_NEW)
		verdict = ln_run_or_copy(ctx, scratch, slot);
	if (verdict != LN_VERDICT_KEEP && verdict != LN_VERDICT_FORWARD) {
		if (arrival == LN_ARRIVAL_NEW)
			ln_message_mark(&scratch->place, LN_TAKEN_LOST, &progress);
		return ln_epilogue(ctx, scratch, req, slot, verdict);
	}
	if (arrival == LN_ARRIVAL_DONE && verdict == LN_VERDICT_KEEP)
		return ln_run_whole(ctx, scratch, req, slot, 1);
	if (ln_message_mark(&scratch->place, arrival == LN_ARRIVAL_NEW ? LN_TAKEN_IN : LN_TAKEN_NOT, &progress)) {
		if (verdict == LN_VERDICT_KEEP)
			return ln_run_whole(ctx, scratch, req, slot, 0);
		ln_message_finish(&scratch->place, LN_MESSAGE_DONE, req->out_total, req->out_status);
	}
	if (verdict == LN_VERDICT_KEEP)
		return ln_acknowledge(ctx, scratch, req, &progress, slot);
	return ln_epilogue(ctx, scratch, req, slot, verdict);
}

/* A pull of a remembered reply: the revision that gave the reply answers it. */
static __always_inline int ln_message_pull(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					   const struct ln_slot *slot, int arrival)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)scratch->flow.rpc;

	if (arrival == LN_ARRIVAL_DONE && slot->revision == bpf_ntohl(rpc->revision))
		return ln_recall(ctx, scratch, req, slot);
	return ln_refuse_for(ctx, scratch, LN_CODE_STALE, 0);
}

/* A packet of a message, for the modes that keep records. */
static __always_inline int ln_message_packet(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					     __u32 pull)
{
	const struct ln_slot *slot;
	int arrival, action;

	scratch->place.slot = scratch->slot;
	scratch->place.now = bpf_ktime_get_coarse_ns();
	arrival = ln_arrive(scratch, pull ? LN_CLAIM_NONE : LN_CLAIM_BEGIN);
	if (arrival == LN_ARRIVAL_BUSY)
		return ln_refuse_message(ctx, scratch, LN_CODE_BUSY);
	if (arrival == LN_ARRIVAL_TOO_LARGE)
		return ln_refuse_message(ctx, scratch, LN_CODE_TOO_LARGE);
	if (arrival == LN_ARRIVAL_ABSENT)
		return ln_refuse_for(ctx, scratch, LN_CODE_STALE, 0);
	scratch->slot = scratch->place.slot;
	slot = bpf_map_lookup_elem(&ln_slots, &scratch->slot);
	/* A client can keep a record alive beyond its revision's drain: another revision may have the slot by now. */
	if (!slot || slot->workload != scratch->place.workload || slot->revision != scratch->place.revision) {
		ln_message_finish(&scratch->place, LN_MESSAGE_FREE, 0, 0);
		action = ln_refuse(ctx, scratch, LN_CODE_STALE, 0);
	} else {
		req->match.record = scratch->place.record;
		req->match.revision = slot->revision;
		if (pull)
			action = ln_message_pull(ctx, scratch, req, slot, arrival);
		else if (arrival == LN_ARRIVAL_MALFORMED)
			action = ln_refuse_for(ctx, scratch, LN_CODE_MALFORMED, 0);
		else if (arrival == LN_ARRIVAL_RUNNING)
			action = XDP_DROP;
		else
			action = ln_message_serve(ctx, scratch, req, arrival);
	}
	ln_message_leave(&scratch->place);
	return action;
}

SEC("xdp.frags")
int ln_messages_module(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct ln_scratch *scratch = bpf_map_lookup_elem(&ln_scratchpads, &zero);
	struct ln_request *req = bpf_map_lookup_elem(&ln_requests, &zero);
	__u32 type;

	if (!scratch || !req)
		return XDP_DROP;
	type = ((const struct ln_rpc *)scratch->flow.rpc)->type;
	if (type != LN_TYPE_ACK)
		return ln_message_packet(ctx, scratch, req, type == LN_TYPE_PULL);
	/* The client has its whole reply, or gave the message up: the record is free. */
	scratch->place.now = bpf_ktime_get_coarse_ns();
	ln_arrive(scratch, LN_CLAIM_FREE);
	return XDP_DROP;
}

/* Named here so that BTF, and the Go types made from it, have it. */
const enum ln_message_state *ln_message_state_ __attribute__((unused));
