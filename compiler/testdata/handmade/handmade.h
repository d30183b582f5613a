/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects that never saw the compiler's passes: what these would have made harmless, or refused, is in them as it was written.
 */
#include <lambda.h>

#define ENTRY \
	char LICENSE[] SEC("license") = "Dual BSD/GPL"; \
	SEC("xdp.frags") \
	int lambda(struct xdp_md *ctx)

static __always_inline struct ln_request *request(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&ln_requests, &zero);
}
