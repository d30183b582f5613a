/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of one packet that are executed at most once: the first packet runs the lambda, and repeated packets get the remembered
 * answer. Every answer leaves by ln_answer(), which stores it here; so does an answer that an external service or a time-out
 * causes much later. Other requests pay one comparison.
 */
#ifndef LN_ONCE_H
#define LN_ONCE_H

#include "../answer.h"
#include "../maps.h"
#include "maps.h"
#include "once_table.h"

_Static_assert(LN_ONCE_ANSWER == LN_RPC_MAX_PAYLOAD, "layout.h does not include rpc_wire.h");

static __always_inline void ln_once_key_of(const struct ln_flow *flow, struct ln_once_key *key)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)flow->rpc;
	const __u64 *addr = (const __u64 *)flow->peer_addr;

	key->addr[0] = addr[0];
	key->addr[1] = addr[1];
	key->request = rpc->request;
	key->workload = bpf_ntohl(rpc->workload);
	key->port = flow->peer_port;
}

static __always_inline struct ln_once_bucket *ln_once_home(const struct ln_once_key *key, __u32 *bucket)
{
	*bucket = ln_once_hash(key, ln_secret) & (LN_ONCE_BUCKETS - 1);
	return bpf_map_lookup_elem(&ln_onces, bucket);
}

/* The bucket and way that flow->once names. */
static __always_inline struct ln_once_bucket *ln_once_named(const struct ln_flow *flow, __u32 *way)
{
	__u32 number = flow->once - 1, bucket = number / LN_ONCE_WAYS;

	*way = number & (LN_ONCE_WAYS - 1);
	return bpf_map_lookup_elem(&ln_onces, &bucket);
}

/* Remembers the answer whose bytes stand at offset at of the packet. */
LN_GLOBAL int ln_once_settle(struct xdp_md *ctx, struct ln_flow *flow, __u32 at, const struct ln_answer *answer)
{
	struct ln_once_key key = {};
	struct ln_once_bucket *b;
	__u64 len;
	__u32 way, ours;

	if (!flow || !answer)
		return 0;
	ln_once_key_of(flow, &key);
	b = ln_once_named(flow, &way);
	if (!b)
		return 0;
	len = answer->length;
	if (len > LN_ONCE_ANSWER)
		return 0;
	bpf_spin_lock(&b->lock);
	/* The run may have taken longer than the request is remembered. */
	ours = ln_once_is(&b->way[way], &key) && b->way[way].state == LN_ONCE_RUNNING;
	b->way[way].users += ours;
	bpf_spin_unlock(&b->lock);
	if (!ours)
		return 0;
	ln_opaque(len); /* the bound above is for the register that the verifier sees */
	if (len && bpf_xdp_load_bytes(ctx, at, b->answer[way], len))
		len = 0;
	bpf_spin_lock(&b->lock);
	b->way[way].type = answer->type;
	b->way[way].code = answer->code;
	b->way[way].revision = answer->revision;
	b->way[way].message_len = answer->message_len;
	b->way[way].length = len;
	b->way[way].state = LN_ONCE_DONE;
	b->way[way].users--;
	bpf_spin_unlock(&b->lock);
	return 0;
}

/*
 * Notes that nobody waits for the answer any more: the client has it (end), or the lambda gave none. Until another request needs the
 * record, repeated packets are dropped: they are late duplicates.
 */
LN_GLOBAL int ln_once_release(struct ln_flow *flow, __u32 running)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	struct ln_once_key key = {};
	struct ln_once_bucket *b;
	__u32 way, bucket;

	if (!flow)
		return 0;
	ln_once_key_of(flow, &key);
	b = ln_once_home(&key, &bucket);
	if (!b)
		return 0;
	bpf_spin_lock(&b->lock);
	way = ln_once_find(b->way, &key, now);
	if (way < LN_ONCE_WAYS && (running || b->way[way].state == LN_ONCE_DONE))
		b->way[way].state = LN_ONCE_RELEASED;
	bpf_spin_unlock(&b->lock);
	return 0;
}

#endif
