/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Match: from a workload ID to the slot of the revision that serves it. */
#ifndef LN_MATCH_H
#define LN_MATCH_H

#include "maps.h"
#include "parse.h"

enum ln_match_result { LN_MATCH_NONE = 0, LN_MATCH_HOST = -1 };

/* Spreads requests over a split by their ID, so that a resend reaches the same revision as long as the split stays. */
static __always_inline __u32 ln_split_pick(__u32 ref, __u64 request)
{
	const struct ln_split *split = bpf_map_lookup_elem(&ln_splits, &ref);
	__u32 point, slot = 0;

	if (!split || !split->total)
		return 0;
	point = (__u32)((request * 0x9e3779b97f4a7c15ULL) >> 32) % split->total;
	for (int i = 0; i < LN_MAX_SPLIT; i++) {
		slot = split->to[i].slot;
		if (point < split->to[i].weight)
			break;
		point -= split->to[i].weight;
	}
	return slot;
}

/* Whether an address, in two words, is one of the NIC's own. */
static __always_inline int ln_is_own(__u64 first, __u64 second)
{
	const volatile struct ln_addresses *own;
	__u32 count, zero = 0;

	own = bpf_map_lookup_elem(&ln_own, &zero);
	if (!own)
		return 0;
	count = own->count;
	for (__u32 i = 0; i < LN_MAX_ADDRESSES && i < count; i++)
		if (first == own->all[i][0] && second == own->all[i][1])
			return 1;
	return 0;
}

/* Whether a request is for us: a host that forwards sees requests to others, too. */
static __always_inline int ln_is_ours(const struct ln_flow *flow)
{
	const __u64 *addr = (const __u64 *)flow->own_addr;

	return ln_is_own(addr[0], addr[1]);
}

/* The slot that serves a new request for this workload; LN_MATCH_NONE or LN_MATCH_HOST. */
static __always_inline int ln_match(__u32 workload, __u64 request)
{
	__u32 index = workload & (LN_MAX_WORKLOADS - 1);
	__u64 *entry = bpf_map_lookup_elem(&ln_dispatch, &index);
	__u64 word;

	if (!entry)
		return LN_MATCH_NONE;
	word = *(volatile __u64 *)entry;
	if (word >> 48 != workload >> 16)
		return LN_MATCH_NONE;
	switch ((word >> 40) & 0xff) {
	case LN_STATE_SLOT:
		return word & 0xffffff;
	case LN_STATE_SPLIT:
		return ln_split_pick(word & 0xffffff, request);
	case LN_STATE_HOST:
		return LN_MATCH_HOST;
	}
	return LN_MATCH_NONE;
}

/* The slot of the match stage, which sees the packets that no workload ID selects; 0 without one. No workload has the ID 0. */
static __always_inline __u32 ln_match_stage(void)
{
	__u32 index = 0;
	__u64 *entry = bpf_map_lookup_elem(&ln_dispatch, &index);
	__u64 word = entry ? *(volatile __u64 *)entry : 0;

	return word >> 40 == LN_STATE_STAGE ? word & 0xffffff : 0;
}

/* The number of the namespace that has the network in which a packet came; 0 if it came in none, or in a VLAN of no namespace. */
static __always_inline __u32 ln_network_owner(struct xdp_md *ctx, const struct ln_packet *pkt)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ln_vlan *tag = data + sizeof(struct ethhdr);
	__u32 network = pkt->network, *owner;

	if (!network && pkt->l3 > sizeof(struct ethhdr) && (void *)(tag + 1) <= end)
		network = LN_NETWORK_VLAN | (bpf_ntohs(tag->tci) & 0xfff);
	if (!network)
		return 0;
	owner = bpf_map_lookup_elem(&ln_networks, &network);
	return owner ? *owner : 0;
}

/*
 * Whether packets in a network of that namespace, or in none, reach the lambda in a slot: the namespace's own lambdas, or those without networks.
 * The host may ask any.
 */
static __always_inline int ln_is_reached(struct xdp_md *ctx, const struct ln_slot *slot, const struct ln_keys *keys,
					 __u32 owner)
{
	return owner ? owner == slot->namespace_id : !keys->networked || ln_is_asked(ctx);
}

/* Hands the packet at hand over to a module, and does not return. If there is no such module, the packet goes to the host. */
static __always_inline int ln_enter(struct xdp_md *ctx, enum ln_module module)
{
	bpf_tail_call(ctx, &ln_modules, module);
	return XDP_PASS;
}

/* A datagram that is neither a request nor for a module goes to the match stage, or to the host if there is no stage. */
static __always_inline int ln_unselected(struct xdp_md *ctx)
{
	return ln_match_stage() ? ln_enter(ctx, LN_MODULE_STAGE) : XDP_PASS;
}

/*
 * A pull names the revision that began its reply, and that revision answers it while it is loaded. Once it is unloaded, another
 * lambda may have its slot.
 */
static __always_inline __u32 ln_match_revision(__u32 slot, __u32 workload, __u32 revision)
{
	for (int i = 0; i <= LN_MAX_PREV; i++) {
		const struct ln_slot *s = bpf_map_lookup_elem(&ln_slots, &slot);

		if (!s || !slot || s->workload != workload)
			return 0;
		if (s->revision == revision)
			return slot;
		slot = s->prev;
	}
	return 0;
}

#endif
