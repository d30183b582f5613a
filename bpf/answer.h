/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an answer's header says. NIC program and lambda-host share these rules. */
#ifndef LN_ANSWER_H
#define LN_ANSWER_H

#include "rpc_wire.h"

/* The header's fields that do not come from the request, in host order. */
struct ln_answer {
	__u8 type;
	__u8 flags;
	__u8 code;
	__u8 pad;
	__u16 length;
	__u16 pad2;
	__u32 revision;
	__u32 index;
	__u32 count;
	__u32 message_len;
	__u32 grant; /* of an acknowledgement */
};

/* What a reply answers: packet index of count, with the reply's bytes from window on, in packets of step bytes. */
struct ln_asked {
	__u32 index;
	__u32 count;
	__u32 window;
	__u32 step;
	__u8 type; /* the packet's */
	__u8 part; /* 1: the reply answers this packet, not its message */
};

/* Sets the reply's packet number and count; -1 where no packet can carry any of the reply. */
static inline __attribute__((always_inline)) int ln_answer_number(struct ln_answer *a, const struct ln_asked *q)
{
	if (q->part && q->count != 1) {
		a->index = q->index;
		a->count = q->count;
	} else if (a->message_len > a->length || q->window) {
		if (!q->step)
			return -1;
		a->index = q->window / q->step;
		a->count = (a->message_len - 1) / q->step + 1;
	}
	if (!q->part && q->type == LN_TYPE_REQUEST && q->count != 1)
		a->flags = LN_FLAG_DONE; /* its message is whole */
	return 0;
}

#endif
