// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* faulty, for tests alone, sends messages back, or drops them, until one tells it to fault. */
struct ik_registers {
	unsigned long long messages; /* that it got */
};

#include "../stream.h"

enum ik_own_fault {
	FAULTY_FAULT_TOLD_TO = IK_FAULT_OWN,
};

static __always_inline __u64 ik_stream_message(void)
{
	return 1;
}

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	struct ik_state *s = ik_begin();
	__u8 first = 0;

	if (!s)
		return IK_PASS;
	s->registers.messages++;
	ik_end(s);
	ik_load(m, 0, &first, sizeof(first));
	if (first == 'f') {
		ik_fault(FAULTY_FAULT_TOLD_TO);
		ik_fault(FAULTY_FAULT_TOLD_TO + 1); /* which is too late */
	}
	if (first == 'x')
		return IK_DROP;
	return first == 'v' ? IK_VERDICTS : IK_REPLY;
}

const enum ik_own_fault *ik_own_fault_ __attribute__((unused));
