/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which datagrams are for which ikernel. A place is where sockets of one ikernel with the same addresses are: a bound socket, or several that share its
 * port. All of its flows lead to it. The ikernel gets them while a socket is at the place. The kernel itself takes a socket away when it closes
 * (net/core/sock_map.c, sock_map_close).
 */
#ifndef IK_FLOWS_H
#define IK_FLOWS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

/* The place of each flow. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, IK_FLOWS);
	__type(key, struct ik_flow);
	__type(value, __u32);
} ik_flows SEC(".maps");

/* The sockets of each place. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, IK_PLACES *IK_SOCKETS);
	__type(key, __u32);
	__type(value, __u64); /* what the daemon reads: the socket's cookie */
} ik_sockets SEC(".maps");

#endif
