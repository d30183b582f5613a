/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of each TCP connection that has, or had, an ikernel. */
#ifndef IK_CONNECTIONS_H
#define IK_CONNECTIONS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

/* The program that gets a segment, which runs while the socket's lock is held, is the only one that writes to it. */
struct ik_connection {
	__u64 next; /* how many bytes of the stream have come */
	__u32 seq; /* TCP's number of the byte that comes next */
	__u32 waits; /* the application may wait in a system call for this connection: its descriptor blocks */
	__u64 part_end; /* where the stream was when bytes was written; other than where a segment begins: they are of no use */
	__u64 part_of; /* the size of their message; another than messages have now: the same */
	/* The beginning of a message whose rest has not come. The room behind it is for the verifier, which adds the longest rest to the longest beginning. */
	__u8 bytes[2 * IK_STREAM_MESSAGE];
};

/* Forgets those that have closed, and where more than this are open, those that were quiet for longest: messages cut in two are not known of them then. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2 * IK_CONNECTIONS);
	__type(key, __u64); /* the socket's cookie */
	__type(value, struct ik_connection);
} ik_connections SEC(".maps");

#endif
