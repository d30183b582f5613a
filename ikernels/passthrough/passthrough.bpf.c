// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* passthrough hands each message to its socket. It shows what an ikernel costs that does nothing. */
struct ik_registers {
	unsigned long long messages;
};

#include "../ikernel.h"

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	struct ik_state *s = ik_begin();

	if (!s)
		return IK_PASS;
	s->registers.messages++;
	ik_end(s);
	return IK_PASS;
}
