// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * The NIC program: parse, match, run the lambda, epilogue. The lambda is a program of its own, reached by a tail call from
 * within run_lambda() (run.h), so that control comes back here and no lambda can skip the epilogue.
 */
#include "maps.h"
#include "parse.h"
#include "match.h"
#include "grant.h"
#include "message.h"
#include "stats.h"
#include "reply.h"
#include "call.h"
#include "pass.h"

/* What checks of a packet return instead of an XDP action where it goes on to its lambda. */
#define LN_ACCEPTED (-1)

/* Answers the packet at hand with an error. message_len says how much room a reply would have needed, or which fault it was, or 0. */
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

/* The same on behalf of a lambda, which is charged for it. */
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

/* Refuses a packet of a message that is not begun. As for requests, the first packet counts: others are refused like it. */
static __always_inline int ln_refuse_message(struct xdp_md *ctx, struct ln_scratch *scratch, __u32 code)
{
	if (!scratch->place.index)
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
	__u32 len, total, step, index;
	const struct ln_rpc *rpc;
	struct ln_stats *stats;
	int action;

	if (!scratch || !req || !slot)
		return XDP_DROP;
	len = req->out_len;
	total = req->out_total;
	step = req->match.window_len;
	rpc = (const struct ln_rpc *)scratch->flow.rpc;
	answer.code = req->out_status;
	answer.length = len;
	answer.revision = slot->revision;
	answer.message_len = total;
	index = scratch->slot;
	stats = bpf_map_lookup_elem(&ln_slot_stats, &index);
	if (len > scratch->flow.room || len > LN_RPC_MAX_PAYLOAD)
		return ln_refuse_for(ctx, scratch, LN_CODE_TOO_LARGE, len > LN_RPC_MAX_PAYLOAD ? 0 : len);
	if (req->match.event == LAMBDA_EVENT_FRAGMENT && rpc->count != bpf_htonl(1)) {
		answer.index = bpf_ntohl(rpc->index);
		answer.count = bpf_ntohl(rpc->count);
	} else if (total > len || req->match.window) {
		/* The further packets would be further runs. */
		if (scratch->flow.once)
			return ln_refuse_for(ctx, scratch, LN_CODE_TOO_LARGE, 0);
		if (!step)
			return ln_refuse_for(ctx, scratch, LN_CODE_TOO_LARGE, total);
		answer.index = req->match.window / step;
		answer.count = (total - 1) / step + 1;
	}
	if (req->match.event != LAMBDA_EVENT_FRAGMENT && rpc->type == LN_TYPE_REQUEST && rpc->count != bpf_htonl(1))
		answer.flags = LN_FLAG_DONE;
	if (req->out_off < -LN_PREFIX)
		return ln_refuse_for(ctx, scratch, LN_CODE_LAMBDA_FAULT, 0);
	action = ln_answer(ctx, &scratch->flow, req->payload_off + req->out_off, &answer);
	if (action != XDP_TX) /* it described bytes that there are not */
		return ln_refuse_for(ctx, scratch, LN_CODE_LAMBDA_FAULT, 0);
	if (stats) {
		stats->replies += !answer.index && rpc->type == LN_TYPE_REQUEST && !req->match.repeat;
		stats->bytes_out += len;
	}
	return action;
}

/* The epilogue: whatever the lambda returned becomes an action here, or nothing. */
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

/* Runs the lambda in scratch->slot on the packet at hand, and measures every LN_SAMPLE_EVERYth run. */
static __noinline int ln_run(struct xdp_md *ctx, struct ln_scratch *scratch)
{
	__u64 began = ln_sample_begin(scratch);
	__u32 slot = scratch->slot;
	struct ln_stats *stats;
	int verdict;

	verdict = run_lambda(ctx, slot);
	if (began) {
		stats = bpf_map_lookup_elem(&ln_slot_stats, &slot);
		if (stats)
			ln_sample_end(stats, began);
	}
	return verdict;
}

/*
 * Hands the lambda a packet to take in, or one of its reply to fill. In mode assemble its object copies the bytes, which is no run of
 * its author's function and is not measured.
 */
static __always_inline int ln_run_or_copy(struct xdp_md *ctx, struct ln_scratch *scratch, const struct ln_slot *slot)
{
	return slot->mode == LN_MODE_ASSEMBLE ? run_lambda(ctx, scratch->slot) : ln_run(ctx, scratch);
}

/* How many packets of the message its client may have sent by now. */
LN_GLOBAL __u32 ln_grant(const struct ln_place *p, const struct ln_progress *progress)
{
	__u32 zero = 0, message, rank;
	struct ln_grants *g = bpf_map_lookup_elem(&ln_granting, &zero);

	if (!g || !p || !progress || !progress->bitmap)
		return 0;
	message = 1 + p->bucket * LN_MESSAGE_WAYS + p->way;
	rank = ln_grant_rank(g, message, progress->left, p->now);
	/* Beyond the last that arrived here, so that whatever the bitmap confirms, there is more to send. */
	return (p->index & ~63U) + ln_log2(progress->bitmap) + 1 + ln_grant_window(rank);
}

/* Answers a packet of a message that the lambda took in, with the bitmap around it, where the client asked. */
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

/* Finds the message's record among the revision's own, or those of the revisions that it superseded. */
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
	if (!req->match.repeat && !scratch->place.index) {
		stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);
		if (stats)
			stats->requests++;
	}
	if (arrival == LN_ARRIVAL_DONE && slot->mode == LN_MODE_ASSEMBLE)
		return ln_recall(ctx, scratch, req, slot);
	/* mode stream runs a packet again when its answer may have been lost; assemble copied it before. */
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

/* A pull of a remembered reply, by the revision that gave it. */
static __always_inline int ln_message_pull(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					   const struct ln_slot *slot, int arrival)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)scratch->flow.rpc;

	if (arrival == LN_ARRIVAL_DONE && slot->revision == bpf_ntohl(rpc->revision))
		return ln_recall(ctx, scratch, req, slot);
	return ln_refuse_for(ctx, scratch, LN_CODE_STALE, 0);
}

/* A packet of a message, for the modes that keep records. */
static __noinline int ln_message_packet(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
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
	/* A record outlives its revision where the client kept it alive beyond the drain: the slot may be anyone's by now. */
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

/* A request or pull that needs no record: the packet is all there is. */
static __noinline int ln_single(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
				const struct ln_slot *slot)
{
	int verdict;

	req->match.event = slot->mode == LN_MODE_STREAM ? LAMBDA_EVENT_FRAGMENT : LAMBDA_EVENT_REQUEST;
	verdict = ln_run(ctx, scratch);
	if (verdict == LN_VERDICT_KEEP && slot->mode == LN_MODE_STREAM) {
		req->match.event = LAMBDA_EVENT_COMPLETE;
		verdict = ln_run(ctx, scratch);
	}
	return ln_epilogue(ctx, scratch, req, slot, verdict);
}

/* A request of one packet, to be executed at most once: LN_ACCEPTED the first time, or the action on one that came again. */
static __noinline int ln_accept_once(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req)
{
	struct ln_answer answer = { .count = 1 };
	__u32 len;
	int failed;

	switch (ln_once_arrive(&scratch->flow)) {
	case LN_ONCE_NEW:
		return LN_ACCEPTED;
	case LN_ONCE_UNDERWAY:
		return XDP_DROP;
	case LN_ONCE_ANSWERED:
		failed = ln_once_recall(ctx, &scratch->flow, req->payload_off, &answer);
		scratch->flow.once = 0; /* it is remembered already */
		len = answer.length;
		if (failed)
			return ln_refuse_for(ctx, scratch, LN_CODE_TOO_LARGE, len);
		return ln_answer(ctx, &scratch->flow, req->payload_off, &answer);
	}
	scratch->flow.once = 0;
	return ln_refuse_for(ctx, scratch, LN_CODE_BUSY, 0);
}

#include "rdma.h"

/* A further packet of a reply: from the revision that began it. */
static __always_inline int ln_pull(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
				   const struct ln_slot *slot)
{
	__u32 revision = bpf_ntohl(((const struct ln_rpc *)scratch->flow.rpc)->revision);
	const struct ln_slot *began;

	scratch->slot = ln_match_revision(scratch->slot, slot->workload, revision);
	began = bpf_map_lookup_elem(&ln_slots, &scratch->slot);
	if (!scratch->slot || !began)
		return ln_refuse(ctx, scratch, LN_CODE_STALE, 0);
	req->match.revision = revision;
	if (began->mode == LN_MODE_ASSEMBLE)
		return ln_message_packet(ctx, scratch, req, 1);
	if (scratch->place.once) /* such a reply has one packet; a pull would run the lambda again */
		return ln_refuse_for(ctx, scratch, LN_CODE_STALE, 0);
	return ln_single(ctx, scratch, req, began);
}

/* The client has its whole reply, or gave the message up: the record is free for others. */
static __always_inline int ln_done(struct ln_scratch *scratch, const struct ln_slot *slot)
{
	if (scratch->place.once && slot->mode != LN_MODE_ASSEMBLE) {
		ln_once_release(&scratch->flow, 0);
		return XDP_DROP;
	}
	scratch->place.now = bpf_ktime_get_coarse_ns();
	ln_arrive(scratch, LN_CLAIM_FREE);
	return XDP_DROP;
}

/* Fills in what the lambda sees of the request. */
static __always_inline int ln_describe(struct ln_scratch *scratch, struct ln_request *req, const struct ln_rpc *rpc,
				       const struct ln_slot *slot)
{
	struct lambda_match *match = &req->match;
	struct ln_place *place = &scratch->place;
	__u32 room = scratch->flow.room, offset = 0;

	place->request = rpc->request;
	place->workload = bpf_ntohl(rpc->workload);
	place->index = bpf_ntohl(rpc->index);
	place->count = bpf_ntohl(rpc->count);
	place->message_len = bpf_ntohl(rpc->message_len);
	place->length = bpf_ntohs(rpc->length);
	place->deadline_us = bpf_ntohl(rpc->deadline_us);
	place->once = slot->once || rpc->flags & LN_FLAG_ONCE;

	match->event = LAMBDA_EVENT_REQUEST; /* also of a remembered reply */
	match->workload = place->workload;
	match->revision = slot->revision;
	match->method = bpf_ntohl(rpc->method);
	match->request = bpf_be64_to_cpu(place->request);
	match->payload_len = place->length;
	match->room = room;
	match->repeat = 0;
	match->record = ~0U; /* of no message yet */
	match->cookie[0] = 0;
	match->cookie[1] = 0;
	match->window = 0;
	match->window_len = room < LN_RPC_MAX_PAYLOAD ? room : LN_RPC_MAX_PAYLOAD;
	req->step = LN_STEP_RUN;
	req->out_off = 0;
	req->out_len = 0;
	req->out_total = 0;
	req->out_status = 0;
	if (rpc->type == LN_TYPE_PULL) {
		/* message length is the size of the reply's packets here; count says how many there are. */
		if (!place->message_len || place->message_len > match->window_len || place->index >= place->count)
			return -1;
		match->window = place->index * place->message_len;
		match->window_len = place->message_len;
		match->message_len = place->length;
		match->offset = 0;
		return (__u64)place->index * place->message_len > 0x7fffffff ? -1 : 0;
	}
	/* An acknowledgement names a message and carries none of it. */
	if (rpc->type == LN_TYPE_ACK) {
		match->offset = 0;
		return 0;
	}
	if (place->count == 1) {
		if (place->index || place->length != place->message_len)
			return -1;
	} else if (ln_place_check(place, &offset)) {
		return -1;
	}
	match->message_len = place->message_len;
	match->offset = offset;
	return 0;
}

/* The path that an accepted packet's type and its lambda's mode ask for. */
static __always_inline int ln_serve(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)scratch->flow.rpc;
	const struct ln_slot *slot = bpf_map_lookup_elem(&ln_slots, &scratch->slot);
	struct ln_stats *stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);
	__u32 pull = rpc->type == LN_TYPE_PULL;
	int action;

	if (!slot || !stats)
		return XDP_DROP;
	if (rpc->type == LN_TYPE_ACK)
		return rpc->flags & LN_FLAG_DONE ? ln_done(scratch, slot) : XDP_DROP;
	if (rpc->flags & LN_FLAG_REGION)
		return ln_region_packet(ctx, scratch, req, pull);
	if (pull)
		return ln_pull(ctx, scratch, req, slot);
	/* A lambda that sees each packet as it comes runs on it again where its answer was lost. */
	if (scratch->place.once && scratch->place.count > 1 && slot->mode == LN_MODE_STREAM)
		return ln_refuse_message(ctx, scratch, LN_CODE_TOO_LARGE);
	/* Of a message that an earlier revision began, the packets may come to one that takes single packets only. */
	if (slot->mode == LN_MODE_ASSEMBLE ||
	    (scratch->place.count > 1 && (slot->mode == LN_MODE_STREAM || slot->prev)))
		return ln_message_packet(ctx, scratch, req, 0);
	if (scratch->place.count > 1 || scratch->place.message_len > slot->message_max)
		return ln_refuse_message(ctx, scratch, LN_CODE_TOO_LARGE);
	if (scratch->place.once) {
		action = ln_accept_once(ctx, scratch, req);
		if (action != LN_ACCEPTED)
			return action;
	}
	stats->requests++;
	return ln_single(ctx, scratch, req, slot);
}

/* Finds the lambda that a datagram to the λ-RPC port asks for, and saves what an answer needs. */
static __always_inline int ln_find_lambda(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_scratch *scratch,
					  struct ln_request *req)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 at = pkt->l4 + sizeof(struct udphdr);
	const struct ln_rpc *rpc = data + at;
	int slot;

	if (at > 0xff || (void *)(rpc + 1) > end || pkt->udp_len < sizeof(struct udphdr) + sizeof(*rpc) ||
	    rpc->magic != bpf_htons(LN_RPC_MAGIC) || rpc->version != LN_RPC_VERSION || rpc->type == LN_TYPE_RESPONSE ||
	    rpc->type == LN_TYPE_ERROR)
		return XDP_PASS;
	slot = ln_match(bpf_ntohl(rpc->workload), rpc->request);
	if (slot == LN_MATCH_NONE)
		ln_count(LN_COUNT_UNKNOWN);
	if (slot < 0 || (slot == LN_MATCH_NONE && !ln_unknown_reply)) {
		ln_count(LN_COUNT_PASSED);
		return XDP_PASS;
	}
	for (int i = 0; i < 8; i++)
		scratch->flow.rpc[i] = ((const __u64 *)rpc)[i];
	if (ln_save_flow(ctx, pkt, &scratch->flow))
		return XDP_DROP;
	if (!ln_is_ours(&scratch->flow) || !ln_is_peer(&scratch->flow))
		return XDP_PASS;
	scratch->flow.room = pkt->udp_len - sizeof(struct udphdr) - sizeof(*rpc);
	if (ln_verify_checksum && !ln_checksum_ok(ctx, pkt, &scratch->flow)) {
		ln_count(LN_COUNT_CHECKSUM);
		return XDP_DROP;
	}
	scratch->slot = slot;
	req->payload_off = at + sizeof(*rpc);
	rpc = (const struct ln_rpc *)scratch->flow.rpc;
	if (rpc->type < LN_TYPE_REQUEST || rpc->type > LN_TYPE_ERROR) {
		ln_count(LN_COUNT_MALFORMED);
		return ln_refuse(ctx, scratch, LN_CODE_MALFORMED, 0);
	}
	if (slot == LN_MATCH_NONE)
		return ln_refuse(ctx, scratch, LN_CODE_UNKNOWN_WORKLOAD, 0);
	return LN_ACCEPTED;
}

/*
 * Checks a datagram to the λ-RPC port and describes it to the lambda that it asks for: LN_ACCEPTED, or the action on a
 * packet that no lambda serves. Not inlined, so that its stack is free again when the lambda runs: Linux 6.8 has none to spare.
 */
static __noinline int ln_accept(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_scratch *scratch,
				struct ln_request *req)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)scratch->flow.rpc;
	int action = ln_find_lambda(ctx, pkt, scratch, req);
	const struct ln_slot *slot;
	struct ln_stats *stats;

	if (action != LN_ACCEPTED)
		return action;
	slot = bpf_map_lookup_elem(&ln_slots, &scratch->slot);
	stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);
	if (!slot || !stats)
		return XDP_DROP;
	stats->bytes_in += bpf_ntohs(rpc->length);
	if (bpf_ntohs(rpc->length) > scratch->flow.room || ln_describe(scratch, req, rpc, slot))
		return ln_refuse_for(ctx, scratch, LN_CODE_MALFORMED, 0);
	return LN_ACCEPTED;
}

/* A datagram to the λ-RPC port. */
static __always_inline int ln_rpc_packet(struct xdp_md *ctx, const struct ln_packet *pkt)
{
	__u32 zero = 0;
	struct ln_scratch *scratch = bpf_map_lookup_elem(&ln_scratchpads, &zero);
	struct ln_request *req = bpf_map_lookup_elem(&ln_requests, &zero);
	int action;

	if (!scratch || !req)
		return XDP_PASS;
	action = ln_accept(ctx, pkt, scratch, req);
	return action == LN_ACCEPTED ? ln_serve(ctx, scratch, req) : action;
}

/*
 * Makes room before what a service answered, where the driver has any. The lambda may make the answer longer, which is moved forward then
 * (lambda_shift() in sdk/lambda_bpf.h): where the packet comes from a local socket, its memory ends where it does.
 */
static __always_inline void ln_spare(struct xdp_md *ctx, struct ln_request *req)
{
	__u8 *data, *end;

	if (bpf_xdp_adjust_head(ctx, -LN_SPARE))
		return;
	req->payload_off += LN_SPARE;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + LN_SPARE > end)
		return;
	for (int i = 0; i < LN_SPARE; i += sizeof(__u64)) /* what an earlier packet left there is no lambda's to see */
		*(__u64 *)(data + i) = 0;
}

/* A datagram to one of the calls' ports: the lambda goes on where it left off. */
static __noinline int ln_resume(struct xdp_md *ctx, const struct ln_packet *pkt)
{
	__u32 zero = 0, frame = sizeof(struct udphdr) + ln_call_frame(bpf_ntohs(pkt->dport));
	struct ln_scratch *scratch = bpf_map_lookup_elem(&ln_scratchpads, &zero);
	struct ln_request *req = bpf_map_lookup_elem(&ln_requests, &zero);
	const struct ln_slot *slot;
	const struct ln_rpc *rpc;

	if (!scratch || !req)
		return XDP_PASS;
	scratch->slot = ln_call_end(ctx, pkt, &scratch->flow, req);
	slot = bpf_map_lookup_elem(&ln_slots, &scratch->slot);
	if (!scratch->slot || !slot)
		return XDP_PASS; /* nobody waits for it: perhaps a socket of the host's does */
	rpc = (const struct ln_rpc *)scratch->flow.rpc;
	req->payload_off = pkt->l4 + frame;
	if (req->out_status)
		return ln_refuse_for(ctx, scratch, req->out_status, 0);
	req->match.workload = slot->workload;
	req->match.revision = slot->revision;
	req->match.method = bpf_ntohl(rpc->method);
	req->match.request = bpf_be64_to_cpu(rpc->request);
	req->match.message_len = pkt->udp_len - frame;
	req->match.payload_len = req->match.message_len;
	req->match.offset = 0;
	req->match.room = scratch->flow.room;
	req->match.window = 0;
	req->match.window_len = 0;
	req->match.repeat = 0;
	req->match.event = LAMBDA_EVENT_REPLY;
	ln_spare(ctx, req);
	req->step = LN_STEP_RUN;
	req->out_off = 0;
	req->out_len = 0;
	req->out_total = 0;
	return ln_epilogue(ctx, scratch, req, slot, ln_run(ctx, scratch));
}

SEC("xdp.frags")
int ln_root(struct xdp_md *ctx)
{
	struct ln_packet pkt;

	if (ln_parse(ctx, &pkt) || (ln_handed_count && !ln_handed_end(ctx)))
		return XDP_PASS;
	if (pkt.dport == bpf_htons(LN_RPC_PORT))
		return ln_rpc_packet(ctx, &pkt);
	if (ln_is_call_port(bpf_ntohs(pkt.dport)))
		return ln_resume(ctx, &pkt);
	if (pkt.dport == bpf_htons(LN_ROCE_PORT) && ln_rdma_find(ctx, &pkt))
		bpf_tail_call(ctx, &ln_parts, LN_PART_RDMA);
	return ln_stage(ctx, &pkt);
}

/* A packet of a match stage's goes on. Run by pacer on what late.h describes, and attached nowhere. */
SEC("xdp.frags")
int ln_later(struct xdp_md *ctx)
{
	return ln_go_on(ctx);
}

/* Hands a packet to the host's stack. Run by pacer on a live frame, and attached nowhere. */
SEC("xdp.frags")
int ln_hand_over(struct xdp_md *ctx)
{
	if (ln_generic && ln_handed_begin(ctx)) {
		ln_count(LN_COUNT_COPIES);
		return XDP_DROP;
	}
	return XDP_PASS;
}

/* Named here so that BTF, and the Go types made from it, have them. */
const enum ln_version *ln_version_ __attribute__((unused));
const enum ln_limit *ln_limit_ __attribute__((unused));
const enum ln_state *ln_state_ __attribute__((unused));
const enum ln_mode *ln_mode_ __attribute__((unused));
const enum ln_protocol *ln_protocol_ __attribute__((unused));
const enum ln_message_state *ln_message_state_ __attribute__((unused));
const enum ln_call_state *ln_call_state_ __attribute__((unused));
const enum ln_counter *ln_counter_ __attribute__((unused));
const enum ln_qp_state *ln_qp_state_ __attribute__((unused));

char LICENSE[] SEC("license") = "Dual BSD/GPL";
