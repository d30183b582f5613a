// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * replicate posts each message to every ring, and passes it on. Each ring has a reader of its own, such as one for each replica that is to get the messages:
 * it has all in the order in which they came to a CPU, but for those that came while it was full, which the ring counts. One that is full holds up no other.
 * Messages that come to several CPUs at once may be in another order in each ring.
 */
struct ik_registers {
	unsigned long long messages; /* that came while there were rings */
};

#include "../rings.h"

static long replicate_post(__u32 ring, void *message)
{
	ik_forward(message, ring);
	return 0;
}

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	__u32 rings = ik_rings_count();
	struct ik_state *s;

	if (!rings)
		return IK_PASS;
	bpf_loop(rings, replicate_post, m, 0);
	s = ik_begin();
	if (!s)
		return IK_PASS;
	s->registers.messages++;
	ik_end(s);
	return IK_PASS;
}
