/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs around a match stage: the one that packets run, and the one that resumes parked packets. */
#ifndef PIF_ENTRY_H
#define PIF_ENTRY_H

/*
 * A clone of the packet goes through the stage once more, as the packet left it. XDP has one packet to send, so the clone is
 * made in place, of the packet itself, and what becomes of both is one action: the clone's where it leaves, else the packet's.
 * Where both leave, the packet's own copy is lost and counted.
 */
#ifdef PIF_CLONES
uint64_t pif_copies_lost;

static __always_inline int pif_run_clone(struct xdp_md *ctx, struct pif_carry *carry, int action)
{
	int again;

	carry->instance = 1;
	carry->clone = 0; /* a clone's clone would go round for ever */
	again = pif_pass(ctx, carry);
	if (again == XDP_DROP)
		return action;
	if (action != XDP_DROP)
		__sync_fetch_and_add(&pif_copies_lost, 1);
	return again;
}
#endif

static __always_inline int pif_run(struct xdp_md *ctx, struct pif_carry *carry)
{
	int action = pif_pass(ctx, carry);

#ifdef PIF_CLONES
	if (carry->clone && !carry->instance && (action == XDP_TX || action == XDP_PASS))
		action = pif_run_clone(ctx, carry, action);
#endif
	return action;
}

#ifdef PIF_CLONES
#define PIF_CARRY(name) \
	uint32_t name##_index = 0; \
	struct pif_carry *name = bpf_map_lookup_elem(&pif_carries, &name##_index); \
\
	if (!name) \
		return XDP_ABORTED; \
	__builtin_memset(name, 0, sizeof(*name))
#else
#define PIF_CARRY(name) struct pif_carry name##_here = {}, *name = &name##_here
#endif

SEC("xdp.frags")
int lambda(struct xdp_md *ctx)
{
	PIF_CARRY(carry);

	return pif_run(ctx, carry);
}

#ifdef PIF_WAITS
/*
 * Run by the host when it has written what lambdas wait for, once for each key in pif_parked, on a packet of its own that begins
 * with the key (BPF_PROG_TEST_RUN, with live frames where the answer is to leave): the packet becomes the parked one and goes its
 * way from here. XDP_ABORTED where there is none, or another was faster.
 */
SEC("xdp.frags")
int lambda_resume(struct xdp_md *ctx)
{
	PIF_CARRY(carry);

	if (pif_unpark(ctx, carry))
		return XDP_ABORTED;
	return pif_run(ctx, carry);
}
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
