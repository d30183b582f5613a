/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long the record of a message is kept. NIC program and lambda-host share these rules. */
#ifndef LN_KEEP_H
#define LN_KEEP_H

#include "../layout.h"

/* How long to wait for the next packet, in ns: no longer than until the client gives up, and a tick of the clock. */
static inline __attribute__((always_inline)) __u64 ln_patience(enum ln_message_state state, __u32 deadline_us,
							       __u32 timeout_ms)
{
	__u64 timeout = (__u64)timeout_ms * 1000000, deadline = (__u64)deadline_us * 1000 + LN_TICK_NS;

	return state == LN_MESSAGE_PARTIAL && deadline_us && deadline < timeout ? deadline : timeout;
}

/*
 * Whether an answered message may make room for another. Its last packet came at touched_ns. A message that is to run at most once
 * stays while its client may still ask for the reply.
 */
static inline __attribute__((always_inline)) int ln_forgettable(int once, int released, __u64 touched_ns, __u64 now)
{
	return released || !once || now >= touched_ns + LN_ONCE_HOLD_NS;
}

#endif
