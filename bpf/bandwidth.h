/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Weighted shares of what the NICs send for namespaces. The rule is that of share.h, and what counts is the time that a link of the configured rate
 * takes for a frame. All CPUs share the links, so those have one virtual time, and one account from which a CPU takes turns. Deficit round robin
 * (Shreedhar and Varghese, SIGCOMM 1995) gives such shares where frames wait in queues. An XDP program has none, so a request is refused while its
 * namespace's answers have had their share. An answer is charged when it is sent, as only then its length is known; that of a call, when that begins.
 */
#ifndef LN_BANDWIDTH_H
#define LN_BANDWIDTH_H

#include "share.h"

/*
 * What no CPU took yet of the links' time. It is negative where they took more than has passed. What is old expires, but not at each packet, which
 * would then change what all CPUs read.
 */
static __always_inline __s64 ln_links_left(struct ln_links *links, __u64 now)
{
	__u64 until = *(volatile __u64 *)&links->until_ns;
	__s64 left = now - until;

	if (left > 2 * LN_SAVED_NS)
		__sync_bool_compare_and_swap(&links->until_ns, until, now - LN_SAVED_NS);
	return left < LN_SAVED_NS ? left : LN_SAVED_NS;
}

/*
 * Up to where the links served a namespace, as this CPU sees it. After a pause it is set forward for all CPUs, so that it can take little at once; and it
 * is not left so far ahead that it would wait for long.
 */
static __always_inline __u64 ln_links_own(struct ln_turns *taken, const struct ln_allowance *mine, __u64 all,
					  __u64 pace)
{
	__u64 told = *(volatile __u64 *)&taken->links_ns, own = told + mine->unsent_ns * pace / LN_PACE, to = own;
	__s64 ahead = own - all, behind_most = LN_BEHIND_NS * pace / LN_PACE, ahead_most = LN_AHEAD_NS * pace / LN_PACE;

	if (ahead < -behind_most)
		to = all - behind_most;
	else if (ahead > ahead_most)
		to = all + ahead_most;
	if (to != own)
		__sync_bool_compare_and_swap(&taken->links_ns, told, told + to - own);
	return to;
}

/* Whether to serve a packet of a namespace whose answers have a share. If so, the CPU has a turn. */
LN_GLOBAL int ln_within_bandwidth(__u32 namespace, __u64 pace)
{
	__u32 zero = 0;
	struct ln_allowance *mine = bpf_map_lookup_elem(&ln_allowances, &namespace);
	struct ln_turns *taken = bpf_map_lookup_elem(&ln_turns_taken, &namespace);
	struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);
	struct ln_links *links = bpf_map_lookup_elem(&ln_links_taken, &zero);
	__s64 ahead, least = -LN_OVERDRAWN_NS;
	__u64 all, own;

	if (!mine || !taken || !cpu || !links)
		return 1;
	all = *(volatile __u64 *)&links->virtual_ns;
	own = ln_links_own(taken, mine, all, pace);
	ahead = own - all;
	if (ahead <= 0 && cpu->links_ns > 0)
		return 1;
	if (ahead > 0)
		least = ln_enough(ahead);
	if (ln_links_left(links, bpf_ktime_get_ns()) <= least)
		return 0;
	if (ahead > 0) /* a turn further, so that not each packet changes what all CPUs read */
		__sync_bool_compare_and_swap(&links->virtual_ns, all, own + LN_LINKS_TURN_NS * pace / LN_PACE);
	if (cpu->links_ns <= 0) {
		__sync_fetch_and_add(&links->until_ns, LN_LINKS_TURN_NS);
		cpu->links_ns += LN_LINKS_TURN_NS;
	}
	return 1;
}

/* Charges a namespace for a frame that is sent. */
LN_GLOBAL int ln_charge_frame(__u32 namespace, __u32 bytes)
{
	__u32 zero = 0;
	const struct ln_quota *quota = bpf_map_lookup_elem(&ln_quotas, &namespace);
	const struct ln_budget *budget = bpf_map_lookup_elem(&ln_budgets, &zero);
	struct ln_allowance *mine = bpf_map_lookup_elem(&ln_allowances, &namespace);
	struct ln_turns *taken = bpf_map_lookup_elem(&ln_turns_taken, &namespace);
	struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);
	struct ln_links *links = bpf_map_lookup_elem(&ln_links_taken, &zero);
	__u64 ns;

	if (!quota || !budget || !mine || !taken || !cpu || !links)
		return 0;
	mine->rest += bytes * budget->byte_ns;
	ns = mine->rest / LN_BYTE;
	mine->rest %= LN_BYTE;
	mine->unsent_ns += ns;
	if (mine->unsent_ns >= LN_LINKS_TURN_NS) {
		__sync_fetch_and_add(&taken->links_ns, mine->unsent_ns * quota->pace[LN_RESOURCE_LINKS] / LN_PACE);
		mine->unsent_ns = 0;
	}
	cpu->links_ns -= ns;
	if (cpu->links_ns < 0) {
		__sync_fetch_and_add(&links->until_ns, -cpu->links_ns);
		cpu->links_ns = 0;
	}
	return 0;
}

#endif
