/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CoAP (RFC 7252): what comes before a request's payload. */
#ifndef CJ_COAP_H
#define CJ_COAP_H

#include "scratch.h"

enum cj_coap {
	CJ_CONFIRMABLE = 0,
	CJ_NON_CONFIRMABLE = 1,
	CJ_PREFIX = 4, /* bytes before the token */
	CJ_TOKEN_MAX = 8, /* bytes; CoAP's token has nothing to do with ours */
	CJ_MARKER = 0xff, /* before the payload */
	CJ_BLOCK1 = 27, /* an option: which part of the request's body this is (RFC 7959) */
	CJ_Q_BLOCK1 = 19, /* (RFC 9177) */
};

/* Reads an option's delta or length, of which these are the four bits; -1: malformed. */
static __always_inline int cj_extended(struct cj_scratch *s, __u32 bits)
{
	__u32 at = s->at;

	if (bits < 13)
		return bits;
	if (bits == 15 || at >= CJ_MESSAGE)
		return -1;
	s->at = at + bits - 12;
	if (bits == 13)
		return 13 + s->message[at];
	return 269 + (s->message[at] << 8 | s->message[at + 1]);
}

/* Whether an option says that a part of the body is in another message. */
static __always_inline int cj_is_part(const struct cj_scratch *s, __u32 len)
{
	__u32 at = s->at, value = 0;

	if (at >= CJ_MESSAGE)
		return 1;
	for (__u32 i = 0; i < 3 && i < len; i++)
		value = value << 8 | s->message[at + i];
	return len > 3 ||
	       value >> 3; /* the number of this part, and whether more follow; the rest is the parts' size */
}

/* Reads an option, or the marker. */
LN_GLOBAL int cj_option(struct cj_scratch *s)
{
	__u32 at, first;
	int delta, len;

	if (!s)
		return CJ_MALFORMED;
	at = s->at;
	if (at >= s->len)
		return CJ_NO_TOKEN;
	if (at >= CJ_MESSAGE)
		return CJ_MALFORMED;
	first = s->message[at];
	s->at = at + 1;
	if (first == CJ_MARKER)
		return at + 1 < s->len ? CJ_PASSED : CJ_MALFORMED;
	delta = cj_extended(s, first >> 4);
	len = cj_extended(s, first & 15);
	if (delta < 0 || len < 0 || s->at + len > s->len)
		return CJ_MALFORMED;
	s->option += delta;
	if (s->option > 0xffff)
		return CJ_MALFORMED;
	if ((s->option == CJ_BLOCK1 || s->option == CJ_Q_BLOCK1) && cj_is_part(s, len))
		return CJ_BLOCKWISE;
	s->at += len;
	return CJ_GOES_ON;
}

/* Reads a message up to its payload. CJ_PASSED: it is a request that has one. */
static __noinline int cj_read_coap(struct cj_scratch *s)
{
	__u32 first = s->message[0], code = s->message[1], token = first & 15, type = first >> 4 & 3;
	int verdict = CJ_GOES_ON;

	if (s->len < CJ_PREFIX || first >> 6 != 1 || token > CJ_TOKEN_MAX || s->len < CJ_PREFIX + token)
		return CJ_MALFORMED;
	if (!code) /* an empty message: acknowledges, resets, or asks whether we are there */
		return s->len == CJ_PREFIX ? CJ_OTHER : CJ_MALFORMED;
	switch (code >> 5) {
	case 0:
		break;
	case 2:
	case 4:
	case 5: /* a response */
		return CJ_OTHER;
	default:
		return CJ_MALFORMED;
	}
	if (type != CJ_CONFIRMABLE && type != CJ_NON_CONFIRMABLE)
		return CJ_MALFORMED;
	s->at = CJ_PREFIX + token;
	s->option = 0;
	for (int i = 0; i <= CJ_OPTIONS && verdict == CJ_GOES_ON; i++)
		verdict = cj_option(s);
	return verdict == CJ_GOES_ON ? CJ_LARGE : verdict;
}

#endif
