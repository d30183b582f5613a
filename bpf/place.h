/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a packet stands in its message. */
#ifndef LN_PLACE_H
#define LN_PLACE_H

#include "maps.h"

/* Whether a packet makes sense by itself; also where its bytes stand in the message. */
static __always_inline int ln_place_check(const struct ln_place *p, __u32 *offset)
{
	__u64 at;

	if (!p->count || p->index >= p->count || p->count > LN_MAX_FRAGMENTS || p->length > p->message_len)
		return -1;
	if (p->count == 1) {
		*offset = 0;
		return p->length == p->message_len ? 0 : -1;
	}
	if (!p->length)
		return -1;
	if (p->index + 1 == p->count) {
		*offset = p->message_len - p->length;
		/* The others are at least as long, and equally long. */
		return *offset % (p->count - 1) || *offset / (p->count - 1) < p->length ? -1 : 0;
	}
	at = (__u64)p->index * p->length;
	*offset = at;
	/* count = ceil(message_len / length) */
	if ((__u64)p->length * (p->count - 1) >= p->message_len || (__u64)p->length * p->count < p->message_len)
		return -1;
	return 0;
}

#endif
