/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A meter stands before an ikernel that is of a namespace, in whose share and quotas it keeps the ikernel. What is too much is dropped: neither
 * the ikernel nor the server sees it. Its source defines ln_is_for_server after it includes this file.
 */
#ifndef LN_METER_H
#define LN_METER_H

#include "chain.h"
#include "parse.h"
#include "quota.h"
#include "sample.h"

const volatile __u32 ln_namespace; /* its index */

/* What a CPU did for the ikernel. */
struct ln_metered {
	struct ln_cost cost;
	struct ln_sampler sampler;
	__u64 charged_ns;
	__u64 over_share; /* packets that were dropped */
	__u64 over_quota;
	__u64 over_bandwidth;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_metered);
} ln_meters SEC(".maps");

/* XDP_PASS, in memory, for what run.h says. */
volatile int ln_passed = XDP_PASS;

static __noinline int ln_call(struct xdp_md *ctx)
{
	int action = ln_passed;

	bpf_tail_call(ctx, &ln_next, ln_zero);
	return action;
}

/* Whether a meter before this one measures. */
static __always_inline int ln_is_timed(void)
{
	__u32 zero = 0;
	const struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);

	return cpu && cpu->timing;
}

/*
 * Runs the ikernel, and charges its namespace if that is to pay, and for what it sends if that has a share. The ikernel may hand the packet on to
 * others with meters of their own. What these take and send is not its own: so all of them measure a run that the first one measures.
 */
static __noinline int ln_run(struct xdp_md *ctx, __u32 namespace, int pays, int sends)
{
	__u32 zero = 0;
	struct ln_metered *m = bpf_map_lookup_elem(&ln_meters, &zero);
	struct ln_cpu *cpu = bpf_map_lookup_elem(&ln_cpus, &zero);
	__u64 timed, before, began = 0, ns = 0, own = 0;
	int action;

	if (!m || !cpu)
		return ln_call(ctx);
	timed = cpu->timing;
	before = cpu->inner_ns;
	if (timed || (pays && (ln_cost_unknown(&m->cost) || ln_is_sample(&m->sampler))))
		began = bpf_ktime_get_ns();
	cpu->timing = began != 0;
	cpu->inner_ns = 0;
	cpu->sent = 0;
	action = ln_call(ctx);
	if (began) {
		ns = bpf_ktime_get_ns() - began;
		own = ns > cpu->inner_ns ? ns - cpu->inner_ns : 1;
	}
	cpu->timing = timed;
	cpu->inner_ns = before + ns;
	if (pays)
		m->charged_ns += ln_charge(namespace, &m->cost, own);
	if (sends && action == XDP_TX && !cpu->sent) {
		ln_charge_frame(namespace, bpf_xdp_get_buff_len(ctx));
		cpu->sent = 1;
	}
	return action;
}

/* Whether a packet is for the server of the ikernel. Others with its port pass this machine, or are for another server. */
static int ln_is_for_server(struct xdp_md *ctx);

SEC("xdp.frags")
int ln_meter(struct xdp_md *ctx)
{
	__u32 namespace = ln_namespace & (LN_MAX_NAMESPACES - 1), zero = 0;
	const struct ln_quota *quota = bpf_map_lookup_elem(&ln_quotas, &namespace);
	struct ln_metered *m = bpf_map_lookup_elem(&ln_meters, &zero);
	int pays = 0, sends = 0;

	if (!quota || !m)
		return ln_pass(ctx, 0);
	if (ln_is_limited(quota) && ln_is_for_server(ctx)) {
		switch (ln_admit_by(quota, namespace, &m->cost, 1, 1)) {
		case LN_CODE_BUSY:
			m->over_share++;
			return XDP_DROP;
		case LN_CODE_OVER_QUOTA:
			m->over_quota++;
			return XDP_DROP;
		case LN_OVER_BANDWIDTH:
			m->over_bandwidth++;
			return XDP_DROP;
		}
		pays = ln_is_charged(quota);
		sends = quota->pace[LN_RESOURCE_LINKS] != 0;
	}
	return pays || sends || ln_is_timed() ? ln_run(ctx, namespace, pays, sends) : ln_pass(ctx, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
