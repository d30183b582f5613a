/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Weighted shares of a CPU's time. An XDP program has no queue in which a packet could wait for its turn. So each is served or refused as it
 * comes, by the rule of start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): a namespace has a virtual time, which passes with the
 * time that it takes, the slower the greater its weight. The CPU has one as well. A namespace that is not ahead of it has not had its share,
 * and is served in any case. One that is ahead is served if the CPU has something left of its budget; then the CPU's virtual time is set
 * forward to the namespace's, so that all others may take as much by their weights before it gets more.
 */
#ifndef LN_SHARE_H
#define LN_SHARE_H

#include "maps.h"

/* Gives the CPU what came of its budget since it last did so. Returns -1 if it has nothing left yet. */
LN_GLOBAL int ln_refill(void)
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
	return cpu->left_ns > 0 ? 0 : -1;
}

/* Whether to serve a packet for a namespace that has a share. */
LN_GLOBAL int ln_within_share(__u32 namespace)
{
	__u32 zero = 0;
	struct ln_allowance *mine = bpf_map_lookup_elem(&ln_allowances, &namespace);
	struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);
	__s64 ahead;

	if (!mine || !cpu)
		return 1;
	ahead = (__s64)(mine->virtual_ns - cpu->virtual_ns);
	if (ahead < -LN_BEHIND_NS)
		mine->virtual_ns = cpu->virtual_ns - LN_BEHIND_NS;
	if (ahead > LN_AHEAD_NS)
		mine->virtual_ns = cpu->virtual_ns + LN_AHEAD_NS;
	if (ahead <= 0)
		return 1;
	if (cpu->left_ns <= 0 && ln_refill())
		return 0;
	cpu->virtual_ns = mine->virtual_ns;
	return 1;
}

/* Charges a namespace time that was spent on it. */
static __always_inline void ln_spend(__u32 namespace, __u64 pace, __u64 ns)
{
	__u32 zero = 0;
	struct ln_allowance *mine = bpf_map_lookup_elem(&ln_allowances, &namespace);
	struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);

	if (!mine || !cpu)
		return;
	mine->virtual_ns += ns * pace / LN_PACE;
	cpu->left_ns -= ns;
}

#endif
