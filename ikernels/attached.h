/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a datagram is for an ikernel. */
#ifndef IK_ATTACHED_H
#define IK_ATTACHED_H

#include "../bpf/headers.h"
#include "../bpf/socket.h"
#include "flows.h"

const volatile __u32 ik_number; /* of this ikernel: ik_flow.ikernel */

static __always_inline int ik_has_socket(__u32 place)
{
	struct bpf_sock *sk;
	__u32 at;

	for (__u32 i = 0; i < IK_SOCKETS; i++) {
		at = place * IK_SOCKETS + i;
		sk = bpf_map_lookup_elem(&ik_sockets, &at);
		if (sk) {
			bpf_sk_release(sk);
			return 1;
		}
	}
	return 0;
}

/* Whether a datagram is for a socket that is attached to this ikernel. */
static __noinline int ik_is_attached(struct xdp_md *ctx, const struct ln_flow *flow)
{
	struct ik_flow key = {};
	struct ln_socket found;
	__u32 *place;

	if (!ln_find_socket(ctx, flow, &found))
		return 0;
	ln_copy_addr(key.own_addr, flow->own_addr);
	key.own_port = flow->own_port;
	key.ikernel = ik_number;
	key.wildcard = found.wildcard;
	if (found.connected) {
		ln_copy_addr(key.peer_addr, flow->peer_addr);
		key.peer_port = flow->peer_port;
	}
	place = bpf_map_lookup_elem(&ik_flows, &key);
	return place && ik_has_socket(*place);
}

#endif
