/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Refuses packets of a namespace before anything was done for them. An answer takes longer than a drop, and whoever sends too
 * much decides how many there are. So a CPU answers only so many in a period; what is refused beyond that is dropped, which leaves the CPU
 * time for what is served, and for the host.
 */
#ifndef LN_REFUSE_H
#define LN_REFUSE_H

#include "epilogue.h"

/* Begins to count anew in a new period. */
static __always_inline void ln_count_refusals(struct ln_refusals *counted, __u64 period)
{
	if (counted->period == period)
		return;
	counted->period = period;
	counted->answered = 0;
}

/*
 * Whether to answer one more refusal to a namespace's packet on this CPU. A namespace has had fewer answers in this period than are left for all:
 * so one that floods the CPU takes a half of them, the next one a quarter, and some are left for one that is refused now and then.
 */
LN_GLOBAL int ln_answers_refusal(__u32 namespace)
{
	__u32 zero = 0;
	struct ln_allowance *mine = bpf_map_lookup_elem(&ln_allowances, &namespace);
	struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);
	__u64 period = bpf_ktime_get_ns() / LN_REFUSALS_NS;

	if (!mine || !cpu)
		return 0;
	ln_count_refusals(&mine->refusals, period);
	ln_count_refusals(&cpu->refusals, period);
	if (mine->refusals.answered + cpu->refusals.answered >= LN_REFUSALS)
		return 0;
	mine->refusals.answered++;
	cpu->refusals.answered++;
	return 1;
}

/*
 * The error says that the request was not executed. So only a request that is sent for the first time gets it: one that is sent again may have
 * been executed before. For the host, answers are not limited.
 */
static __always_inline int ln_refuse_first(struct xdp_md *ctx, struct ln_scratch *scratch, const struct ln_slot *slot,
					   int code)
{
	const struct ln_rpc *rpc = (const struct ln_rpc *)scratch->flow.rpc;

	if (rpc->type != LN_TYPE_REQUEST || rpc->index || rpc->flags & LN_FLAG_RESEND)
		return XDP_DROP;
	if (!ln_is_asked(ctx) && !ln_answers_refusal(ln_namespace_of(slot)))
		return XDP_DROP;
	return ln_refuse_for(ctx, scratch, code, 0);
}

/* Refuses a packet for what ln_admit() says. */
static __always_inline int ln_not_admitted(struct xdp_md *ctx, struct ln_scratch *scratch, const struct ln_slot *slot,
					   struct ln_stats *stats, int code)
{
	switch (code) {
	case LN_CODE_OVER_QUOTA:
		stats->over_quota++;
		break;
	case LN_OVER_BANDWIDTH:
		stats->over_bandwidth++;
		code = LN_CODE_BUSY;
		break;
	default:
		stats->over_share++;
	}
	return ln_refuse_first(ctx, scratch, slot, code);
}

#endif
