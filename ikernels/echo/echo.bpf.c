// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* echo sends each message back. */
struct ik_registers {
	unsigned long long messages, bytes;
};

#include "../ikernel.h"

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	struct ik_state *s = ik_begin();

	if (!s)
		return IK_PASS;
	s->registers.messages++;
	s->registers.bytes += m->len;
	ik_end(s);
	return IK_REPLY;
}
