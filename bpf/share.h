/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Weighted shares of a CPU's time. An XDP program has no queue in which a packet could wait for its turn. So each is served or refused as it
 * comes, by the rule of start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): a namespace has a virtual time, which passes with the
 * time that it takes, the slower the greater its weight. The CPU has one as well. A namespace that is not ahead of it has not had its share,
 * and is served even if that overdraws the CPU's budget a little. One that is ahead is served if the CPU has enough left of its budget; then
 * the CPU's virtual time is set forward to the namespace's, so that all others may take as much by their weights before it gets more. In the
 * same way, the lambdas of a namespace share what it gets, all alike: one that is not ahead of the others has not had its share. Lambdas may
 * overdraw the budget less than namespaces may, so that a namespace with many lambdas takes nothing from the others.
 *
 * A CPU also charges a namespace for what it took on other CPUs. So of those whose packets come to it, a CPU serves who has taken least on all
 * CPUs, and that is max-min fair (test/shares): what one has can grow only at the cost of another one who has no more.
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

/* Sets a virtual time forward that is too far behind the one up to which all may be served. */
static __always_inline void ln_catch_up(__u64 *own, __u64 all, __u64 most_behind)
{
	if ((__s64)(*own - all) < -(__s64)most_behind)
		*own = all - most_behind;
}

/* Whether a virtual time is ahead of the one up to which all may be served. It is set back if it is too far ahead. */
static __always_inline int ln_ahead(__u64 *own, __u64 all)
{
	__s64 ahead = (__s64)(*own - all);

	if (ahead > LN_AHEAD_NS)
		*own = all + LN_AHEAD_NS;
	return ahead > 0;
}

/* Tells the other CPUs what a namespace took on this one: now and then, so that they do not wait for each other. */
static __always_inline void ln_tell(__u32 namespace, struct ln_allowance *mine, __u64 ns)
{
	struct ln_turns *told;

	mine->untold_ns += ns;
	if (mine->untold_ns < LN_TOLD_NS)
		return;
	told = bpf_map_lookup_elem(&ln_turns_taken, &namespace);
	if (!told)
		return;
	__sync_fetch_and_add(&told->spent_ns, mine->untold_ns);
	mine->known_ns += mine->untold_ns;
	mine->untold_ns = 0;
}

/*
 * Charges a namespace for what other CPUs told of it, but not for more than sets it far ahead on this CPU: when it takes less elsewhere, it is
 * not to wait here for long. Only one packet in LN_HEAR_EVERY looks, as others may have changed the word.
 */
static __always_inline void ln_hear(__u32 namespace, const struct ln_cpu *cpu, struct ln_allowance *mine, __u64 pace)
{
	const struct ln_turns *told;
	__u64 ns;

	if (++mine->packets % LN_HEAR_EVERY)
		return;
	told = bpf_map_lookup_elem(&ln_turns_taken, &namespace);
	if (!told)
		return;
	ns = *(const volatile __u64 *)&told->spent_ns - mine->known_ns;
	mine->known_ns += ns;
	if (ns > LN_ELSEWHERE_NS)
		ns = LN_ELSEWHERE_NS;
	if ((__s64)(mine->virtual_ns - cpu->virtual_ns) < (__s64)(LN_ELSEWHERE_NS * pace / LN_PACE))
		mine->virtual_ns += ns * pace / LN_PACE;
}

/*
 * What a CPU must have left to serve a namespace that is so far ahead: the more, the further. So of those who had their shares, the first for
 * whom there is enough is the one that is least ahead.
 */
static __always_inline __s64 ln_enough(__u64 ahead)
{
	__u64 doublings = 0;

#pragma unroll
	for (int bits = 32; bits; bits /= 2) {
		if (ahead >> bits) {
			ahead >>= bits;
			doublings += bits;
		}
	}
	return doublings * LN_TURN_NS;
}

/*
 * How far behind a namespace may be. After a pause that is little, or it would take all at once. But who was refused lately did not pause: more of
 * what it is owed is kept, however far the CPU's virtual time went while others took what was left.
 */
static __always_inline __u64 ln_most_behind(const struct ln_cpu *cpu, const struct ln_allowance *mine, __u64 pace)
{
	return (cpu->filled_ns - mine->refused_ns < LN_OWED_FOR_NS ? LN_OWED_NS : LN_BEHIND_NS) * pace / LN_PACE;
}

/* Charges a lambda and its namespace for time that was spent on them. */
static __always_inline void ln_spend(__u32 namespace, struct ln_cpu *cpu, struct ln_allowance *mine,
				     struct ln_cost *lambda, __u64 pace, __u64 ns)
{
	lambda->virtual_ns += ns;
	mine->virtual_ns += ns * pace / LN_PACE;
	cpu->left_ns -= ns;
	ln_tell(namespace, mine, ns);
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
	ln_catch_up(&mine->virtual_ns, cpu->virtual_ns, ln_most_behind(cpu, mine, pace));
	ln_hear(namespace, cpu, mine, pace);
	ln_catch_up(&lambda->virtual_ns, mine->lambdas_ns, LN_BEHIND_NS);
	ahead = ln_ahead(&mine->virtual_ns, cpu->virtual_ns);
	among = ln_ahead(&lambda->virtual_ns, mine->lambdas_ns);
	if (!ahead)
		least = -LN_OVERDRAWN_NS;
	else if (!among)
		least = -LN_OVERDRAWN_LAMBDAS_NS;
	else
		least = ln_enough(mine->virtual_ns - cpu->virtual_ns);
	if (cpu->left_ns <= least && ln_refill(least)) {
		mine->refused_ns = cpu->filled_ns;
		return 0;
	}
	if (ahead && among)
		cpu->virtual_ns = mine->virtual_ns;
	if (among)
		mine->lambdas_ns = lambda->virtual_ns;
	ln_spend(namespace, cpu, mine, lambda, pace, LN_PACKET_NS);
	return 1;
}

#endif
