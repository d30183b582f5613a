// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * The root of the NIC program: parse, match, serve. The root serves requests of one packet; their lambda is one tail call away. For
 * everything else it tail calls a module (enum ln_module), or the ikernel of the packet's port.
 */
#include "demux.h"
#include "handed.h"
#include "match.h"
#include "parse.h"
#include "place.h"
#include "refuse.h"
#include "roce_wire.h"
#include "single.h"

/* Checks return this instead of an XDP action if the packet goes on to its lambda. */
#define LN_ACCEPTED (-1)

/* A pull of a reply's further packet, which the revision that began the reply sends. */
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
		return ln_enter(ctx, LN_MODULE_MESSAGES);
	if (scratch->place.once) /* such a reply has one packet; a pull would run the lambda again */
		return ln_refuse_for(ctx, scratch, LN_CODE_STALE, 0);
	return ln_single(ctx, scratch, req, began);
}

/* Describes the request to the lambda. */
static __always_inline int ln_describe(struct ln_scratch *scratch, struct ln_request *req, const struct ln_rpc *rpc,
				       const struct ln_slot *slot)
{
	struct lambda_match *match = &req->match;
	struct ln_place *place = &scratch->place;
	__u32 room = scratch->flow.room, offset = 0;

	place->request = rpc->request;
	place->workload = bpf_ntohl(rpc->workload);
	place->part.index = bpf_ntohl(rpc->index);
	place->part.count = bpf_ntohl(rpc->count);
	place->part.message_len = bpf_ntohl(rpc->message_len);
	place->part.length = bpf_ntohs(rpc->length);
	place->deadline_us = bpf_ntohl(rpc->deadline_us);
	place->once = slot->once || rpc->flags & LN_FLAG_ONCE;

	match->event = LAMBDA_EVENT_REQUEST; /* also for a remembered reply */
	match->workload = place->workload;
	match->revision = slot->revision;
	match->method = bpf_ntohl(rpc->method);
	match->request = bpf_be64_to_cpu(place->request);
	match->payload_len = place->part.length;
	match->room = room;
	match->repeat = 0;
	match->record = ~0U; /* no message yet */
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
		/* Here message_len is the size of the reply's packets, and count their number. */
		match->window = place->part.index * place->part.message_len;
		if (!ln_place_pull(place->part.index, place->part.count, place->part.message_len, match->window_len))
			return -1;
		match->window_len = place->part.message_len;
		match->message_len = place->part.length;
		match->offset = 0;
		return 0;
	}
	/* An acknowledgement names a message, and carries no bytes of it. */
	if (rpc->type == LN_TYPE_ACK) {
		match->offset = 0;
		return 0;
	}
	if (ln_place_check(&place->part, &offset))
		return -1;
	match->message_len = place->part.message_len;
	match->offset = offset;
	return 0;
}

/* The client has its whole reply, or gave the message up. */
static __always_inline int ln_done(struct xdp_md *ctx, const struct ln_scratch *scratch, const struct ln_slot *slot)
{
	return ln_enter(ctx,
			scratch->place.once && slot->mode != LN_MODE_ASSEMBLE ? LN_MODULE_ONCE : LN_MODULE_MESSAGES);
}

/* Serves an accepted packet, by its type and its lambda's mode. */
static __always_inline int ln_serve(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)scratch->flow.rpc;
	const struct ln_slot *slot = bpf_map_lookup_elem(&ln_slots, &scratch->slot);
	struct ln_stats *stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);
	int code;

	if (!slot || !stats)
		return XDP_DROP;
	if (rpc->type == LN_TYPE_ACK)
		return rpc->flags & LN_FLAG_DONE ? ln_done(ctx, scratch, slot) : XDP_DROP;
	code = ln_admit(ctx, scratch, slot, rpc->type == LN_TYPE_REQUEST && !scratch->place.part.index);
	if (code)
		return ln_not_admitted(ctx, scratch, slot, stats, code);
	if (rpc->flags & LN_FLAG_REGION)
		return ln_enter(ctx, LN_MODULE_REGIONS);
	if (rpc->type == LN_TYPE_PULL)
		return ln_pull(ctx, scratch, req, slot);
	/* In mode stream, a lambda runs on a packet again if its answer was lost. */
	if (scratch->place.once && scratch->place.part.count > 1 && slot->mode == LN_MODE_STREAM)
		return ln_refuse_message(ctx, scratch, LN_CODE_TOO_LARGE);
	/* A revision of mode packet may get packets of a message that an earlier revision began. */
	if (slot->mode == LN_MODE_ASSEMBLE ||
	    (scratch->place.part.count > 1 && (slot->mode == LN_MODE_STREAM || slot->prev)))
		return ln_enter(ctx, LN_MODULE_MESSAGES);
	if (scratch->place.part.count > 1 || scratch->place.part.message_len > slot->message_max)
		return ln_refuse_message(ctx, scratch, LN_CODE_TOO_LARGE);
	if (scratch->place.once)
		return ln_enter(ctx, LN_MODULE_ONCE);
	stats->requests++;
	return ln_single(ctx, scratch, req, slot);
}

/* The lambda that a packet is for. */
struct ln_target {
	const struct ln_slot *slot;
	const struct ln_keys *keys; /* of its namespace */
};

/* Finds the lambda that a datagram to the λ-RPC port is for, and saves what an answer needs. */
static __always_inline int ln_find_lambda(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_scratch *scratch,
					  struct ln_request *req, struct ln_target *target)
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
	if (slot == LN_MATCH_NONE) {
		ln_count(LN_COUNT_UNKNOWN);
	} else if (slot > 0) {
		target->slot = bpf_map_lookup_elem(&ln_slots, &slot);
		if (!target->slot)
			return XDP_DROP;
		target->keys = ln_keys_of(target->slot);
		if (!target->keys)
			return XDP_DROP;
		if (!ln_is_reached(ctx, target->slot, target->keys, ln_network_owner(ctx, pkt))) {
			ln_count(LN_COUNT_NETWORK);
			slot = LN_MATCH_NONE;
		}
	}
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
 * Refuses a packet whose tag is wrong, or missing where the lambda's namespace requires one: LN_ACCEPTED, or the action on such a packet. The host,
 * which has the keys, asks without a tag.
 */
static __always_inline int ln_authenticate(struct xdp_md *ctx, struct ln_scratch *scratch, __u32 payload_off,
					   const struct ln_target *target, struct ln_stats *stats)
{
	const struct ln_slot *slot = target->slot;
	int tagged = ((const struct ln_rpc *)scratch->flow.rpc)->flags & LN_FLAG_TAG, code;

	if (!tagged && (!target->keys->required || ln_is_asked(ctx)))
		return LN_ACCEPTED;
	code = tagged ? ln_check_tag(ctx, scratch, slot->namespace_id, payload_off) : LN_CODE_BAD_TAG;
	if (!code) {
		scratch->flow.signer = ln_namespace_of(slot);
		return LN_ACCEPTED;
	}
	if (code == LN_REPLAYED) { /* the client has its answer, or sends the request again with another number */
		stats->replayed++;
		return XDP_DROP;
	}
	stats->bad_tags++;
	return ln_refuse_first(ctx, scratch, slot, LN_CODE_BAD_TAG);
}

/*
 * Checks a datagram to the λ-RPC port and describes it to its lambda: LN_ACCEPTED, or the action on a packet that no lambda
 * serves. Not inlined, so that its stack is free again when the lambda runs: Linux 6.8 has none to spare.
 */
static __noinline int ln_accept(struct xdp_md *ctx, const struct ln_packet *pkt, struct ln_scratch *scratch,
				struct ln_request *req)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)scratch->flow.rpc;
	struct ln_target target = {};
	int action = ln_find_lambda(ctx, pkt, scratch, req, &target);
	struct ln_stats *stats;

	if (action != LN_ACCEPTED)
		return action;
	stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);
	if (!target.slot || !target.keys || !stats)
		return XDP_DROP;
	action = ln_authenticate(ctx, scratch, req->payload_off, &target, stats);
	if (action != LN_ACCEPTED)
		return action;
	stats->bytes_in += bpf_ntohs(rpc->length);
	if (bpf_ntohs(rpc->length) > scratch->flow.room || ln_describe(scratch, req, rpc, target.slot))
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

SEC("xdp.frags")
int ln_root(struct xdp_md *ctx)
{
	struct ln_packet pkt;

	if (ln_parse(ctx, &pkt) || (ln_handed_count && !ln_handed_end(ctx)))
		return XDP_PASS;
	if (pkt.dport == bpf_htons(LN_RPC_PORT) || (pkt.dport == bpf_htons(LN_VXLAN_PORT) && !ln_unwrap(ctx, &pkt)))
		return ln_rpc_packet(ctx, &pkt);
	if (ln_is_call_port(bpf_ntohs(pkt.dport)))
		return ln_enter(ctx, LN_MODULE_CALLS);
	if (pkt.dport == bpf_htons(LN_ROCE_PORT))
		return ln_enter(ctx, LN_MODULE_RDMA);
	bpf_tail_call(ctx, &ln_ikernels, bpf_ntohs(pkt.dport));
	return ln_unselected(ctx);
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
const enum ln_module *ln_module_ __attribute__((unused));
const enum ln_counter *ln_counter_ __attribute__((unused));
