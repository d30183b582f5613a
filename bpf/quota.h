/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Admission by the share and the quotas of a namespace, and what each run takes of them. */
#ifndef LN_QUOTA_H
#define LN_QUOTA_H

#include "bandwidth.h"
#include "rpc_wire.h"
#include "share.h"

/* Besides the codes of errors: busy, as the namespace's answers have had their share. */
#define LN_OVER_BANDWIDTH (-1)

/* How often to try when other CPUs take turns, too. */
#define LN_TURN_TRIES 4

/*
 * Takes for this CPU the turns that have come, as many as it needs to have something left. A rate's turns come one after the other, and
 * those that nobody took expire when they are older than the burst. Returns -1 if it has nothing left yet.
 */
LN_GLOBAL int ln_take_turns(__u32 namespace, __u32 of)
{
	const struct ln_quota *quota = bpf_map_lookup_elem(&ln_quotas, &namespace);
	struct ln_turns *taken = bpf_map_lookup_elem(&ln_turns_taken, &namespace);
	struct ln_allowance *mine = bpf_map_lookup_elem(&ln_allowances, &namespace);
	__u64 now = bpf_ktime_get_ns();
	const struct ln_rate *rate;

	if (!quota || !taken || !mine || of >= LN_RATES)
		return -1;
	rate = &quota->rate[of];
	if (!rate->units || !rate->turn_ns)
		return -1;
	for (int i = 0; i < LN_TURN_TRIES; i++) {
		__u64 until = *(volatile __u64 *)&taken->until_ns[of], from = until, turns, wanted = 1;

		if ((__s64)(now - rate->burst_ns - until) > 0)
			from = now - rate->burst_ns;
		if ((__s64)(from + rate->turn_ns - now) > 0)
			return -1;
		turns = (now - from) / rate->turn_ns;
		if (mine->left[of] < 0)
			wanted += (__u64)-mine->left[of] / rate->units;
		if (turns > wanted)
			turns = wanted;
		if (!__sync_bool_compare_and_swap(&taken->until_ns[of], until, from + turns * rate->turn_ns))
			continue;
		mine->left[of] += turns * rate->units;
		return mine->left[of] > 0 ? 0 : -1;
	}
	return -1;
}

/* Whether a namespace may do more now. */
LN_GLOBAL int ln_within_quota(__u32 namespace, int begins)
{
	const struct ln_quota *quota = bpf_map_lookup_elem(&ln_quotas, &namespace);
	struct ln_allowance *mine = bpf_map_lookup_elem(&ln_allowances, &namespace);
	const struct ln_rate *rate;

	if (!quota || !mine)
		return 1;
	rate = &quota->rate[LN_RATE_TIME];
	if (rate->turn_ns && (mine->left[LN_RATE_TIME] <= 0 || !rate->units) && ln_take_turns(namespace, LN_RATE_TIME))
		return 0;
	rate = &quota->rate[LN_RATE_REQUESTS];
	if (!begins || !rate->turn_ns)
		return 1;
	if ((mine->left[LN_RATE_REQUESTS] <= 0 || !rate->units) && ln_take_turns(namespace, LN_RATE_REQUESTS))
		return 0;
	mine->left[LN_RATE_REQUESTS]--;
	return 1;
}

/* Whether anything bounds what a namespace may do. */
static __always_inline int ln_is_limited(const struct ln_quota *quota)
{
	return (quota->pace[LN_RESOURCE_TIME] | quota->pace[LN_RESOURCE_LINKS] | quota->rate[LN_RATE_TIME].turn_ns |
		quota->rate[LN_RATE_REQUESTS].turn_ns) != 0;
}

/* Whether what a namespace takes is charged: its time is bounded. */
static __always_inline int ln_is_charged(const struct ln_quota *quota)
{
	return (quota->pace[LN_RESOURCE_TIME] | quota->rate[LN_RATE_TIME].turn_ns) != 0;
}

/*
 * Whether to serve a packet for what has this cost and belongs to the namespace: 0, the code of the error that says why not, or
 * LN_OVER_BANDWIDTH. One that begins a request takes one of its namespace's requests. Only what is answered to a sender takes bandwidth.
 */
static __always_inline int ln_admit_by(const struct ln_quota *quota, __u32 namespace, struct ln_cost *cost, int begins,
				       int sends)
{
	if (quota->pace[LN_RESOURCE_TIME] && !ln_within_share(namespace, cost, quota->pace[LN_RESOURCE_TIME]))
		return LN_CODE_BUSY;
	if (sends && quota->pace[LN_RESOURCE_LINKS] && !ln_within_bandwidth(namespace, quota->pace[LN_RESOURCE_LINKS]))
		return LN_OVER_BANDWIDTH;
	if ((quota->rate[LN_RATE_TIME].turn_ns | quota->rate[LN_RATE_REQUESTS].turn_ns) &&
	    !ln_within_quota(namespace, begins))
		return LN_CODE_OVER_QUOTA;
	return 0;
}

/* Whether too few runs were measured to know what one takes. */
static __always_inline int ln_cost_unknown(const struct ln_cost *cost)
{
	return cost->count < LN_COST_SAMPLES;
}

/*
 * What to charge for a run, which took ns, or was not measured if ns is 0. What interrupted a measured run is in its time: so one measurement
 * changes the mean only as much as LN_COST_SAMPLES runs of the usual length.
 */
static __always_inline __u64 ln_cost_of(struct ln_cost *cost, __u64 ns)
{
	__u64 mean = cost->sum_ns / LN_COST_SAMPLES;

	if (cost->count < LN_COST_SAMPLES) {
		cost->sum_ns += ns;
		cost->count++;
		return ns;
	}
	if (ns)
		cost->sum_ns += (ns < cost->sum_ns ? ns : cost->sum_ns) - mean;
	return mean;
}

/* Charges a run, as ln_cost_of(), to what has this cost and to its namespace. Returns the charge. */
static __always_inline __u64 ln_charge(__u32 namespace, struct ln_cost *cost, __u64 ns)
{
	__u32 zero = 0;
	const struct ln_quota *quota = bpf_map_lookup_elem(&ln_quotas, &namespace);
	struct ln_allowance *mine = bpf_map_lookup_elem(&ln_allowances, &namespace);
	struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);

	if (!quota || !mine || !cpu)
		return 0;
	ns = ln_cost_of(cost, ns);
	mine->left[LN_RATE_TIME] -= ns;
	if (quota->pace[LN_RESOURCE_TIME])
		ln_spend(namespace, cpu, mine, cost, quota->pace[LN_RESOURCE_TIME], ns);
	return ns;
}

#endif
