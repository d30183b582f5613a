/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A token's three parts, in base64url (RFC 4648 section 5): without padding, without other characters, and with no bits left over, so that nothing
 * has two encodings.
 */
#ifndef CJ_BASE64_H
#define CJ_BASE64_H

#include "scratch.h"

#define CJ_DOT 64 /* what stands for the dot between parts */
#define CJ_NONE 128 /* what stands for all other characters */

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winitializer-overrides"
/* What a character stands for: from 0 to 63, CJ_DOT or CJ_NONE. */
static const __u8 cj_values[256] = {
	[0 ... 255] = CJ_NONE,
	['.'] = CJ_DOT,
	['A'] = 0,
	1,
	2,
	3,
	4,
	5,
	6,
	7,
	8,
	9,
	10,
	11,
	12,
	13,
	14,
	15,
	16,
	17,
	18,
	19,
	20,
	21,
	22,
	23,
	24,
	25,
	['a'] = 26,
	27,
	28,
	29,
	30,
	31,
	32,
	33,
	34,
	35,
	36,
	37,
	38,
	39,
	40,
	41,
	42,
	43,
	44,
	45,
	46,
	47,
	48,
	49,
	50,
	51,
	['0'] = 52,
	53,
	54,
	55,
	56,
	57,
	58,
	59,
	60,
	61,
	['-'] = 62,
	['_'] = 63,
};
#pragma clang diagnostic pop

static __always_inline __u32 cj_value(const struct cj_scratch *s, __u32 at)
{
	return at < CJ_TOKEN + 4 ? cj_values[s->token[at]] : CJ_NONE;
}

/* Decodes the last characters before the first dot, at this offset, up to three. Returns where the dot is; 0: there is none. */
static __always_inline __u32 cj_decode_rest(struct cj_scratch *s, __u32 at, __u32 to)
{
	__u32 a = cj_value(s, at), b = cj_value(s, at + 1), c = cj_value(s, at + 2), d = cj_value(s, at + 3);

	if (to > CJ_HEADER - 2)
		return 0;
	s->header_len = to;
	if (a == CJ_DOT)
		return at;
	if (a > 63 || b > 63)
		return 0;
	s->header[to] = a << 2 | b >> 4;
	s->header_len = to + 1;
	if (c == CJ_DOT)
		return b & 15 ? 0 : at + 2;
	if (c > 63 || d != CJ_DOT || c & 3)
		return 0;
	s->header[to + 1] = b << 4 | c >> 2;
	s->header_len = to + 2;
	return at + 3;
}

/* Decodes the header, up to the first dot. Returns where that is; 0: there is none, or another character. */
LN_GLOBAL __u32 cj_decode_header(struct cj_scratch *s)
{
	__u32 i;

	if (!s)
		return 0;
	for (i = 0; i < CJ_SIGNED / 4; i++) {
		__u32 a = cj_values[s->token[i * 4]], b = cj_values[s->token[i * 4 + 1]];
		__u32 c = cj_values[s->token[i * 4 + 2]], d = cj_values[s->token[i * 4 + 3]];

		if ((a | b | c | d) > 63)
			break;
		a = a << 18 | b << 12 | c << 6 | d;
		s->header[i * 3] = a >> 16;
		s->header[i * 3 + 1] = a >> 8;
		s->header[i * 3 + 2] = a;
	}
	return cj_decode_rest(s, i * 4, i * 3);
}

/* Whether these characters are what a part could be. */
LN_GLOBAL int cj_is_part_of_token(const struct cj_scratch *s, __u32 at, __u32 len)
{
	__u32 all = 0, last = 0;

	if (!s || at > CJ_SIGNED || len < 2 || len > CJ_SIGNED)
		return 0;
	ln_opaque(len); /* so that the verifier sees the loop's own bound */
	for (__u32 i = 0; i < CJ_SIGNED && i < len; i++) {
		last = cj_values[s->token[at + i]];
		all |= last;
	}
	if (all > 63)
		return 0;
	switch (len & 3) {
	case 1:
		return 0;
	case 2:
		return !(last & 15);
	case 3:
		return !(last & 3);
	}
	return 1;
}

/* Decodes the signature at this offset; 0: it is none. */
LN_GLOBAL int cj_decode_signature(struct cj_scratch *s, __u32 at)
{
	__u32 all = 0, group = 0;

	if (!s || at > CJ_SIGNED + 1)
		return 0;
	for (__u32 i = 0; i < CJ_SIGNATURE; i++) {
		__u32 value = cj_values[s->token[at + i]];

		all |= value;
		group = group << 6 | value;
		if ((i & 3) == 3) {
			s->signature[i / 4 * 3] = group >> 16;
			s->signature[i / 4 * 3 + 1] = group >> 8;
			s->signature[i / 4 * 3 + 2] = group;
		}
	}
	s->signature[30] = group >> 10; /* the last three are 18 bits, of which two must be 0 */
	s->signature[31] = group >> 2;
	return all <= 63 && !(group & 3);
}

#endif
