/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Demultiplexing: a root hands each datagram over to the ikernel that is attached to its port (internal/demux), by a tail call. */
#ifndef LN_DEMUX_H
#define LN_DEMUX_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

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

#endif
