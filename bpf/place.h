/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a packet stands in its message. NIC program and lambda-host share these rules. */
#ifndef LN_PLACE_H
#define LN_PLACE_H

#include "layout.h"

/* What a packet of a request says about its message, in host order. */
struct ln_part {
	__u32 index;
	__u32 count;
	__u32 message_len;
	__u32 length; /* of its own payload */
};

/* Whether a packet makes sense by itself; also where its bytes stand in the message. */
static inline __attribute__((always_inline)) int ln_place_check(const struct ln_part *p, __u32 *offset)
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

/*
 * Whether a packet that makes sense by itself fits the message, whose first packet announced count packets and message_len bytes. All
 * packets but the last carry the same number of bytes, *fragment, which is 0 until a packet has set it. The last one, which begins at
 * a multiple of it, sets it, too: a gap between it and the others would expose an earlier message's bytes.
 */
static inline __attribute__((always_inline)) int ln_place_fits(const struct ln_part *p, __u32 count, __u32 message_len,
							       __u32 *fragment)
{
	__u32 size = p->length;

	if (p->count != count || p->message_len != message_len)
		return 0;
	if (p->index && p->index + 1 == p->count)
		size = (p->message_len - p->length) / p->index;
	if (!*fragment)
		*fragment = size;
	return *fragment == size;
}

/* Whether a pull of packet index of count makes sense, for packets of size bytes, of which one may hold at most most. */
static inline __attribute__((always_inline)) int ln_place_pull(__u32 index, __u32 count, __u32 size, __u32 most)
{
	return size && size <= most && index < count && (__u64)index * size <= 0x7fffffff;
}

#endif
