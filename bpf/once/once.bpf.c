// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * Requests of one packet that are executed at most once. The root hands over their packets, and those that say that a client has
 * its answer.
 */
#include "../single.h"

enum ln_once_arrival {
	LN_ONCE_NEW, /* to be run */
	LN_ONCE_UNDERWAY, /* to be dropped: the answer comes by itself, or the client has it */
	LN_ONCE_ANSWERED, /* to be answered by ln_once_again() */
	LN_ONCE_FULL,
};

/* Looks the request up, or begins it. flow->once then names its record. */
LN_GLOBAL int ln_once_arrive(struct ln_flow *flow)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	int arrival = LN_ONCE_UNDERWAY;
	struct ln_once_key key = {};
	struct ln_once_bucket *b;
	__u32 way, bucket;

	if (!flow)
		return LN_ONCE_FULL;
	ln_once_key_of(flow, &key);
	b = ln_once_home(&key, &bucket);
	if (!b)
		return LN_ONCE_FULL;
	bpf_spin_lock(&b->lock);
	way = ln_once_find(b->way, &key, now);
	if (way < LN_ONCE_WAYS) {
		b->way[way].expires_ns = now + LN_ONCE_NS;
		if (b->way[way].state == LN_ONCE_DONE) {
			b->way[way].users++;
			arrival = LN_ONCE_ANSWERED;
		}
	} else {
		way = ln_once_choose(b->way, key.workload, now);
		arrival = LN_ONCE_FULL;
		if (way < LN_ONCE_WAYS) {
			ln_once_take(&b->way[way], &key, now);
			arrival = LN_ONCE_NEW;
		}
	}
	bpf_spin_unlock(&b->lock);
	flow->once = 1 + bucket * LN_ONCE_WAYS + way;
	return arrival;
}

/* Writes the remembered answer to offset at of the packet, which has room for it, and its header's fields to answer. 0, or -1. */
LN_GLOBAL int ln_once_recall(struct xdp_md *ctx, struct ln_flow *flow, __u32 at, struct ln_answer *answer)
{
	struct ln_once_bucket *b;
	const struct ln_once *r;
	__u32 way;
	__u64 len;
	int err = -1;

	if (!flow || !answer)
		return -1;
	b = ln_once_named(flow, &way);
	if (!b)
		return -1;
	r = &b->way[way]; /* ln_once_arrive() holds it: nobody writes it */
	len = r->length;
	answer->type = r->type;
	answer->code = r->code;
	answer->length = len;
	answer->revision = r->revision;
	answer->message_len = r->message_len;
	if (len <= flow->room && len <= LN_ONCE_ANSWER) {
		ln_opaque(len);
		err = len ? (int)bpf_xdp_store_bytes(ctx, at, b->answer[way], len) : 0;
	}
	bpf_spin_lock(&b->lock);
	b->way[way].users--;
	bpf_spin_unlock(&b->lock);
	return err;
}

/* Answers a repeated request with the remembered answer. */
static __always_inline int ln_once_again(struct xdp_md *ctx, struct ln_scratch *scratch, const struct ln_request *req)
{
	struct ln_answer answer = { .count = 1 };
	int failed = ln_once_recall(ctx, &scratch->flow, req->payload_off, &answer);
	__u32 len = answer.length;

	scratch->flow.once = 0; /* it is remembered already */
	if (failed)
		return ln_refuse_for(ctx, scratch, LN_CODE_TOO_LARGE, len);
	return ln_answer(ctx, &scratch->flow, req->payload_off, &answer);
}

/* Runs the lambda on a request that came for the first time. */
static __always_inline int ln_once_request(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req)
{
	const struct ln_slot *slot = bpf_map_lookup_elem(&ln_slots, &scratch->slot);
	struct ln_stats *stats = bpf_map_lookup_elem(&ln_slot_stats, &scratch->slot);

	if (!slot || !stats)
		return XDP_DROP;
	switch (ln_once_arrive(&scratch->flow)) {
	case LN_ONCE_NEW:
		stats->requests++;
		return ln_single(ctx, scratch, req, slot);
	case LN_ONCE_UNDERWAY:
		return XDP_DROP;
	case LN_ONCE_ANSWERED:
		return ln_once_again(ctx, scratch, req);
	}
	scratch->flow.once = 0;
	return ln_refuse_for(ctx, scratch, LN_CODE_BUSY, 0);
}

SEC("xdp.frags")
int ln_once_module(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct ln_scratch *scratch = bpf_map_lookup_elem(&ln_scratchpads, &zero);
	struct ln_request *req = bpf_map_lookup_elem(&ln_requests, &zero);

	if (!scratch || !req)
		return XDP_DROP;
	if (((const struct ln_rpc *)scratch->flow.rpc)->type != LN_TYPE_ACK)
		return ln_once_request(ctx, scratch, req);
	ln_once_release(&scratch->flow, 0); /* the client has its answer */
	return XDP_DROP;
}
