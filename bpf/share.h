/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Weighted shares of a CPU's time. An XDP program has no queue in which a packet could wait for its turn. So each is served or refused as it
 * comes, by the rule of start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): a namespace has a virtual time, which passes with the
 * time that it takes, the slower the greater its weight. The CPU has one as well. A namespace that is not ahead of it has not had its share,
 * and is served even if that overdraws the CPU's budget a little. One that is ahead is served if the CPU has something left of its budget; then
 * the CPU's virtual time is set forward to the namespace's, so that all others may take as much by their weights before it gets more. In the
 * same way, the lambdas of a namespace share what it gets, all alike: one that is not ahead of the others has not had its share. Lambdas may
 * overdraw the budget less than namespaces may, so that a namespace with many lambdas takes nothing from the others.
 */
#ifndef LN_SHARE_H
#define LN_SHARE_H

#include "namespaces.h"
#include "verifier.h"

/* Gives the CPU what came of its budget since it last did so. Returns -1 if it has no more than least left yet. */
LN_GLOBAL int ln_refill(__s64 least)
{
	__u32 zero = 0;
	const struct ln_budget *budget = bpf_map_lookup_elem(&ln_budgets, &zero);
	struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);
	__u64 now = bpf_ktime_get_ns(), since;

	if (!budget || !cpu)
		return -1;
	since = now - cpu->filled_ns;
	if (since > 1000000000)
		since = 1000000000;
	cpu->filled_ns = now;
	cpu->left_ns += since * budget->share / LN_BUDGET;
	if (cpu->left_ns > LN_SAVED_NS)
		cpu->left_ns = LN_SAVED_NS;
	return cpu->left_ns > least ? 0 : -1;
}

/* Whether a virtual time is ahead of the one up to which all may be served. It is brought nearer if it is too far off. */
static __always_inline int ln_ahead(__u64 *own, __u64 all, __u64 most_behind)
{
	__s64 ahead = (__s64)(*own - all);

	if (ahead < -(__s64)most_behind)
		*own = all - most_behind;
	if (ahead > LN_AHEAD_NS)
		*own = all + LN_AHEAD_NS;
	return ahead > 0;
}

/* Charges a lambda and its namespace for time that was spent on them. */
static __always_inline void ln_spend(struct ln_cpu *cpu, struct ln_allowance *mine, struct ln_cost *lambda, __u64 pace,
				     __u64 ns)
{
	lambda->virtual_ns += ns;
	mine->virtual_ns += ns * pace / LN_PACE;
	cpu->left_ns -= ns;
}

/* Whether to serve a packet for a lambda whose namespace has a share. If so, what the NIC program does for it is charged. */
LN_GLOBAL int ln_within_share(__u32 namespace, struct ln_cost *lambda, __u64 pace)
{
	__u32 zero = 0;
	struct ln_allowance *mine = bpf_map_lookup_elem(&ln_allowances, &namespace);
	struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);
	int ahead, among;
	__s64 least;

	if (!mine || !lambda || !cpu)
		return 1;
	ahead = ln_ahead(&mine->virtual_ns, cpu->virtual_ns, LN_BEHIND_NS * pace / LN_PACE);
	among = ln_ahead(&lambda->virtual_ns, mine->lambdas_ns, LN_BEHIND_NS);
	least = !ahead ? -LN_OVERDRAWN_NS : !among ? -LN_OVERDRAWN_LAMBDAS_NS : 0;
	if (cpu->left_ns <= least && ln_refill(least))
		return 0;
	if (ahead && among)
		cpu->virtual_ns = mine->virtual_ns;
	if (among)
		mine->lambdas_ns = lambda->virtual_ns;
	ln_spend(cpu, mine, lambda, pace, LN_PACKET_NS);
	return 1;
}

#endif
