/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an ikernel's program, the watch over sockets and the daemon share. */
#ifndef IK_LAYOUT_H
#define IK_LAYOUT_H

#include <linux/types.h>

enum ik_limit {
	IK_PLACES = 4096, /* of all ikernels of a node */
	IK_SOCKETS = 16, /* of a place */
	IK_FLOWS = 65536, /* addresses of sockets, of all ikernels of a node */
	IK_REGISTERS = 16, /* of an ikernel */
	IK_RINGS = 128, /* of an ikernel: the descriptors of all fit one packet (SCM_MAX_FD) */
	IK_MAX_RING = 67108864, /* bytes of a ring */
	IK_MAX_RINGS_MEMORY = 1073741824, /* bytes of all rings of an ikernel */
	IK_NOTES_MEMORY = 65536, /* bytes of an application's notes to its ikernel: whole pages of any machine */
	IK_MAX_MESSAGE = 65535, /* bytes of a datagram */
	IK_STREAM_MESSAGE = 64, /* bytes of a message of a stream */
	IK_STREAMS = 4096, /* TCP sockets that are attached, beside the connections of those that listen */
	IK_CONNECTIONS = 16384, /* of a listening socket */
};

/* What an ikernel does with a message. */
enum ik_verdict {
	IK_PASS, /* the socket gets it */
	IK_DROP,
	IK_REPLY, /* it goes back to its sender, as it is now */
	IK_VERDICTS,
};

/* What no ikernel can go on with (faults.h). */
enum ik_fault_code {
	IK_FAULT_STATE_NOT_FOUND = 1, /* ik_begin has no registers */
	IK_FAULT_MEMORY_NOT_FOUND, /* a map of the ikernel lacks what it always has */
	IK_FAULT_RING_NOT_FOUND, /* the application has opened it */
	IK_FAULT_UNKNOWN_VERDICT, /* of ik_receive */
	IK_FAULT_OWN = 256, /* and above: the ikernel's own */
};

/*
 * The datagrams that a socket gets, as long as one has the place. Addresses are as in struct ln_flow. A connected socket gets those of its peer, and one that
 * is not connected all others: its peer is 0. One that is bound to an address gets what comes for it, and one that is not all others.
 */
struct ik_flow {
	__u8 own_addr[16];
	__u8 peer_addr[16];
	__be16 own_port;
	__be16 peer_port;
	__u32 ikernel; /* its number, which no other one ever has */
	__u32 wildcard; /* 1: the socket is bound to no address */
};

/* Reads all registers of an ikernel, and writes some, if others have the values that are expected. */
struct ik_transaction {
	__u64 expect; /* bit i: register i has to have the value expected[i] */
	__u64 write; /* bit i: register i gets the value values[i] */
	__u64 expected[IK_REGISTERS];
	__u64 values[IK_REGISTERS]; /* out: all registers as they were before */
};

/* What stands before each message in a ring: the datagram of which it is. Addresses are as in struct ln_flow. */
struct ik_head {
	__u64 time; /* when it was posted, in ns of CLOCK_MONOTONIC */
	__u8 peer_addr[16];
	__u8 own_addr[16];
	__be16 peer_port;
	__be16 own_port;
	__u8 ipv6;
	__u8 pad[3];
};

/* Messages to a ring. */
struct ik_ring_counts {
	__u64 posted;
	__u64 refused; /* as the ring was full */
};

#endif
