/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * External calls: a lambda's request to a service on the network, sent and answered in the NIC program. A call's record is
 * found by its service's own 16-bit request ID, or, where the protocol has none, by the source port. Both are random, and
 * an answer has to come from the server that was asked. So whoever cannot see the request cannot forge its answer (RFC 5452
 * argues likewise for DNS), and a late reply to an earlier use of a record matches no call.
 */
#ifndef LN_CALLS_PORTS_H
#define LN_CALLS_PORTS_H

#include "maps.h"

/* The frame header of memcached's UDP protocol, which its text and binary protocols share (memcached's doc/protocol.txt). */
struct ln_memcached {
	__be16 request;
	__be16 sequence;
	__be16 total;
	__be16 reserved;
};

/* Whether a datagram to this port could answer a call. */
static __always_inline int ln_is_call_port(__u16 port)
{
	return (__u16)(port - LN_CALL_PORT) < LN_CALL_PORTS + LN_MAX_RAW_CALLS;
}

/* Bytes of the answer before those that the lambda sees. */
static __always_inline __u32 ln_call_frame(__u16 port)
{
	return (__u16)(port - LN_CALL_PORT) < LN_CALL_PORTS ? sizeof(struct ln_memcached) : 0;
}

#endif
