/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Demultiplexing: hands a datagram over to the ikernel that is attached to its port (internal/demux). */
#ifndef LN_DEMUX_H
#define LN_DEMUX_H

#include "parse.h"

/*
 * The programs of ikernels, by port. It is not pinned: the kernel empties a map of programs when user space has no reference to it any
 * more (kernel/bpf/arraymap.c, bpf_fd_array_map_clear). So ikernels end with the daemon that attached them, whose part of the work they need.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} ln_ikernels SEC(".maps");

/* Hands the packet at hand over to the ikernel of its port. Returns only if there is none. */
static __always_inline void ln_enter_ikernel(struct xdp_md *ctx, const struct ln_packet *pkt)
{
	bpf_tail_call(ctx, &ln_ikernels, bpf_ntohs(pkt->dport));
}

#endif
