/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The route to a service. */
#ifndef LN_ROUTE_H
#define LN_ROUTE_H

#include "calls/maps.h"
#include "parse.h"

/* Finds the next hop to a service, from our own address of its family. 0, or not 0 where there is none. */
static __always_inline int ln_next_hop(struct xdp_md *ctx, struct bpf_fib_lookup *fib, const struct ln_service *svc,
				       const volatile void *from)
{
	fib->ifindex = ctx->ingress_ifindex;
	fib->l4_protocol = IPPROTO_UDP;
	if (svc->ipv6) {
		fib->family = 10; /* AF_INET6 */
		ln_copy_addr(fib->ipv6_src, from);
		ln_copy_addr(fib->ipv6_dst, svc->addr);
	} else {
		fib->family = 2; /* AF_INET */
		fib->ipv4_src = *(const volatile __be32 *)from;
		fib->ipv4_dst = *(__be32 *)svc->addr;
	}
	/* The helper leaves the source as it is, and replaces the destination by the gateway. */
	return bpf_fib_lookup(ctx, fib, sizeof(*fib), 0) != BPF_FIB_LKUP_RET_SUCCESS;
}

#endif
