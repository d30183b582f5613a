/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Several ikernels can have one port: a datagram that one of them leaves to the server goes to the next, by a tail call, and from the last to the server. */
#ifndef LN_CHAIN_H
#define LN_CHAIN_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "slot.h"

/* At how many ports the program can have a next one. */
#ifndef LN_CHAINS
#define LN_CHAINS 1
#endif

/*
 * The next ikernel's program, by the port modulo LN_CHAINS (internal/demux). As ln_ikernels in demux.h, it is not pinned: the kernel empties it with
 * the end of the daemon.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, LN_CHAINS);
	__type(key, __u32);
	__type(value, __u32);
} ln_next SEC(".maps");

/* Leaves a datagram to the next ikernel, or to the server. Called by the program itself, with the packet as it came. */
static __always_inline int ln_pass(struct xdp_md *ctx, __u32 slot)
{
	bpf_tail_call(ctx, &ln_next, slot + ln_zero);
	return XDP_PASS;
}

#endif
