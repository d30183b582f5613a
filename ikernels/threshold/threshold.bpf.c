// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * threshold averages integers in the NIC, and lets only those through that exceed a limit. A message has one integer of four bytes, big-endian and signed, at
 * an offset. Messages that are too short go to the socket. Those of a TCP connection have no bytes after the integer.
 *
 * If the application has opened rings, it gets an alert there instead of the message. Where the ring is full, it gets the message.
 */
struct ik_registers {
	long long limit; /* integers above it go to the socket */
	unsigned long long offset; /* bytes before the integer */
	long long sum; /* of all integers */
	unsigned long long count; /* how many there were */
	unsigned long long alerts; /* of these: how many exceeded the limit */
};

#include "../rings.h"
#include "../stream.h"

/* What the application gets of an integer above the limit. */
struct threshold_alert {
	long long value;
	long long sum; /* of all integers, with this one */
	unsigned long long count;
};

/* Posts an alert; what it says is from one moment. */
static __always_inline int threshold_post(const struct ik_message *m, const struct threshold_alert *said)
{
	struct threshold_alert *alert = ik_reserve(m, ik_ring_by_core(), sizeof(*alert));

	if (!alert)
		return -1;
	*alert = *said;
	ik_commit(alert);
	return 0;
}

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	struct ik_state *s = ik_begin();
	struct threshold_alert said;
	__be32 number;
	__u64 offset;
	int alert;

	if (!s)
		return IK_PASS;
	offset = s->registers.offset;
	ik_end(s);
	if (offset > (__u32)-1 || ik_load(m, offset, &number, sizeof(number)))
		return IK_PASS;
	said.value = (__s32)bpf_ntohl(number);
	s = ik_begin();
	if (!s)
		return IK_PASS;
	alert = said.value > s->registers.limit;
	said.sum = s->registers.sum += said.value;
	said.count = ++s->registers.count;
	s->registers.alerts += alert;
	ik_end(s);
	if (!alert)
		return IK_DROP;
	return threshold_post(m, &said) ? IK_PASS : IK_DROP;
}

static __always_inline __u64 ik_stream_message(void)
{
	struct ik_state *s = ik_begin();
	__u64 offset;

	if (!s)
		return 0;
	offset = s->registers.offset;
	ik_end(s);
	return offset + sizeof(__be32);
}
