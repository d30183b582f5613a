/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Admission of packets for lambdas. Where a lambda's namespace has neither share nor quota, this only looks at the namespace's entry: once for
 * the packet, and once for each run.
 */
#ifndef LN_ADMIT_H
#define LN_ADMIT_H

#include "maps.h"
#include "parse.h"
#include "quota.h"
#include "stats.h"

/* Whether the lambda serves no packet of which neither tag nor network is looked at. */
static __always_inline int ln_is_guarded(const struct ln_slot *slot)
{
	const struct ln_keys *keys = ln_keys_of(slot);

	return keys && (keys->required | keys->networked);
}

/* Whether to serve the packet at hand for a lambda, as ln_admit_by(). No link carries what the host asks for. */
static __always_inline int ln_admit(struct xdp_md *ctx, struct ln_scratch *scratch, const struct ln_slot *record,
				    int begins)
{
	__u32 namespace = ln_namespace_of(record), slot = scratch->slot;
	const struct ln_quota *quota = bpf_map_lookup_elem(&ln_quotas, &namespace);
	int sends = !ln_is_asked(ctx), code;

	if (!quota)
		return 0;
	code = ln_admit_by(quota, namespace,
			   quota->pace[LN_RESOURCE_TIME] ? bpf_map_lookup_elem(&ln_costs, &slot) : NULL, begins, sends);
	if (!code && sends && quota->pace[LN_RESOURCE_LINKS])
		scratch->flow.payer = namespace;
	return code;
}

/* The namespace that pays for a slot's runs; 0, an index that no namespace has, if it has no share and no quota of time. */
static __always_inline __u32 ln_payer(__u32 slot)
{
	const struct ln_slot *record = bpf_map_lookup_elem(&ln_slots, &slot);
	const struct ln_quota *quota;
	__u32 namespace;

	if (!record)
		return 0;
	namespace = ln_namespace_of(record);
	quota = bpf_map_lookup_elem(&ln_quotas, &namespace);
	return quota && ln_is_charged(quota) ? namespace : 0;
}

/* Whether too few of a slot's runs were measured to know what one takes. */
static __always_inline int ln_is_new(__u32 slot)
{
	const struct ln_cost *cost = bpf_map_lookup_elem(&ln_costs, &slot);

	return cost && ln_cost_unknown(cost);
}

static __always_inline void ln_charge_slot(__u32 namespace, __u32 slot, __u64 ns)
{
	struct ln_cost *cost = bpf_map_lookup_elem(&ln_costs, &slot);

	if (cost)
		ln_charge(namespace, cost, ns);
}

#endif
