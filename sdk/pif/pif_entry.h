/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program around a match stage. */
#ifndef PIF_ENTRY_H
#define PIF_ENTRY_H

SEC("xdp.frags")
int lambda(struct xdp_md *ctx)
{
	struct ln_pass *pass = NULL;
#ifdef PIF_CLONES
	uint32_t zero = 0;

	pass = bpf_map_lookup_elem(&ln_passes, &zero);
	/* A clone that waited may be of an earlier revision, which kept other metadata. */
	if (!pass || (pass->instance && pass->shape != PIF_SHAPE))
		return XDP_ABORTED;
#endif
	return pif_pass(ctx, pass);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
