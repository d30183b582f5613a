// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * threshold averages integers in the NIC, and lets only those through that exceed a limit. A message has one integer of four bytes, big-endian and signed, at
 * an offset. Messages that are too short go to the socket.
 */
struct ik_registers {
	long long limit; /* integers above it go to the socket */
	unsigned long long offset; /* bytes before the integer */
	long long sum; /* of all integers */
	unsigned long long count; /* how many there were */
	unsigned long long alerts; /* of these: how many exceeded the limit */
};

#include "../ikernel.h"

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	struct ik_state *s = ik_begin();
	__be32 number;
	__u32 offset;
	__s32 value;
	int alert;

	if (!s)
		return IK_PASS;
	offset = s->registers.offset;
	ik_end(s);
	if (ik_load(m, offset, &number, sizeof(number)))
		return IK_PASS;
	value = bpf_ntohl(number);
	s = ik_begin();
	if (!s)
		return IK_PASS;
	alert = value > s->registers.limit;
	s->registers.sum += value;
	s->registers.count++;
	s->registers.alerts += alert;
	ik_end(s);
	return alert ? IK_PASS : IK_DROP;
}
