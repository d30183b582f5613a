/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CBOR (RFC 8949): finds the token in a request's payload, which is one map. */
#ifndef CJ_CBOR_H
#define CJ_CBOR_H

#include "scratch.h"

enum cj_major {
	CJ_UNSIGNED,
	CJ_NEGATIVE,
	CJ_BYTES,
	CJ_TEXT,
	CJ_ARRAY,
	CJ_MAP,
	CJ_TAG,
	CJ_SIMPLE,
};

#define CJ_UNKNOWN (~0u)

/* The head of an item. */
struct cj_head {
	__u32 major;
	__u32 indefinite; /* or, of CJ_SIMPLE, a break */
	__u64 value;
};

/* Reads a head; 0: there is none. */
static __always_inline int cj_read_head(struct cj_scratch *s, struct cj_head *h)
{
	__u32 at = s->at, info, size;

	if (at >= s->len || at >= CJ_MESSAGE)
		return 0;
	info = s->message[at];
	h->major = info >> 5;
	info &= 31;
	h->indefinite = info == 31;
	h->value = info;
	s->at = at + 1;
	if (info < 24 || info == 31)
		return 1;
	if (info > 27)
		return 0;
	size = 1 << (info - 24);
	h->value = bpf_be64_to_cpu(*(const __u64 *)(s->message + at + 1)) >> (64 - 8 * size);
	s->at = at + 1 + size;
	return s->at <= s->len && (h->major != CJ_SIMPLE || size != 1 || h->value >= 32);
}

/* Opens an array, a map or a string of parts. */
static __always_inline int cj_open(struct cj_scratch *s, const struct cj_head *h, __u32 token)
{
	struct cj_level *l;
	__u32 depth = s->depth;

	if (depth >= CJ_DEPTH || (!h->indefinite && h->value > CJ_MESSAGE))
		return CJ_PAYLOAD;
	l = &s->levels[depth & (CJ_DEPTH - 1)];
	l->kind = h->major;
	l->left = h->indefinite ? CJ_UNKNOWN : h->major == CJ_MAP ? 2 * h->value : h->value;
	l->items = 0;
	l->token = token;
	s->depth = depth + 1;
	return CJ_GOES_ON;
}

/* Copies the token, or a part of it, from the payload to its end. */
static __always_inline int cj_copy(struct xdp_md *ctx, struct cj_scratch *s, __u32 payload, __u32 len)
{
	__u32 to = s->token_len;

	if (!len)
		return CJ_GOES_ON;
	if (to + len > CJ_TOKEN)
		return CJ_LARGE;
	ln_opaque(to);
	if (to > CJ_TOKEN || !ln_length_fits(len, CJ_TOKEN) ||
	    bpf_xdp_load_bytes(ctx, payload + s->at, s->token + to, len))
		return CJ_PAYLOAD;
	s->token_len = to + len;
	return CJ_GOES_ON;
}

/* Skips a string of known length. */
static __always_inline int cj_string(struct xdp_md *ctx, struct cj_scratch *s, __u32 payload, const struct cj_head *h,
				     __u32 token)
{
	int verdict = CJ_GOES_ON;

	if (h->value > s->len - s->at)
		return CJ_PAYLOAD;
	if (token)
		verdict = cj_copy(ctx, s, payload, h->value);
	s->at += h->value;
	return verdict;
}

/*
 * Reads a key of the payload's map. It is a text or a number, and neither tagged nor in parts: of others, some decoders make the same key as of the
 * text "token", and the server would see another token than we do.
 */
static __always_inline int cj_key(struct cj_scratch *s, struct cj_level *l, const struct cj_head *h)
{
	const __u8 *text;
	__u32 at = s->at;

	l->token = 0;
	if (h->indefinite || (h->major != CJ_TEXT && h->major != CJ_UNSIGNED && h->major != CJ_NEGATIVE))
		return CJ_PAYLOAD;
	if (h->major != CJ_TEXT || h->value != 5)
		return CJ_GOES_ON;
	if (at >= CJ_MESSAGE)
		return CJ_PAYLOAD;
	text = s->message + at;
	if (*(const __u32 *)text != bpf_htonl(0x746f6b65) || text[4] != 'n')
		return CJ_GOES_ON;
	if (s->found)
		return CJ_PAYLOAD; /* a second one */
	s->found = l->token = 1;
	return CJ_GOES_ON;
}

/* Takes an item within an array or a map. */
static __always_inline int cj_take(struct xdp_md *ctx, struct cj_scratch *s, __u32 payload, struct cj_level *l,
				   const struct cj_head *h)
{
	__u32 is_key = 0, token, known = h->major == CJ_BYTES || h->major == CJ_TEXT;
	int verdict;

	if (!s->tagged) {
		is_key = s->depth == 1 && !(l->items & 1);
		l->items++;
		if (l->left != CJ_UNKNOWN)
			l->left--;
	}
	if (is_key) {
		verdict = cj_key(s, l, h);
		if (verdict != CJ_GOES_ON)
			return verdict;
	}
	token = !is_key && s->depth == 1 && l->token;
	if (token && h->major != CJ_TEXT)
		return CJ_PAYLOAD;
	s->tagged = h->major == CJ_TAG;
	switch (h->major) {
	case CJ_ARRAY:
	case CJ_MAP:
		return cj_open(s, h, 0);
	case CJ_BYTES:
	case CJ_TEXT:
		return h->indefinite ? cj_open(s, h, token) : cj_string(ctx, s, payload, h, token);
	default:
		return h->indefinite || known ? CJ_PAYLOAD : CJ_GOES_ON;
	}
}

/* Reads a head and what belongs to it. CJ_PASSED: the map has ended. */
LN_GLOBAL int cj_item(struct xdp_md *ctx, struct cj_scratch *s, __u32 payload)
{
	struct cj_level *l;
	struct cj_head h;
	int verdict;

	if (!s || !s->depth || !cj_read_head(s, &h))
		return CJ_PAYLOAD;
	l = &s->levels[(s->depth - 1) & (CJ_DEPTH - 1)];
	if (h.major == CJ_SIMPLE && h.indefinite) { /* a break */
		if (l->left != CJ_UNKNOWN || s->tagged || (l->kind == CJ_MAP && l->items & 1))
			return CJ_PAYLOAD;
		l->left = 0;
		verdict = CJ_GOES_ON;
	} else if (l->kind == CJ_BYTES || l->kind == CJ_TEXT) { /* a part of a string */
		if (h.major != l->kind || h.indefinite)
			return CJ_PAYLOAD;
		verdict = cj_string(ctx, s, payload, &h, l->token);
	} else {
		verdict = cj_take(ctx, s, payload, l, &h);
	}
	if (verdict != CJ_GOES_ON || s->tagged)
		return verdict;
	for (int i = 0; i < CJ_DEPTH && s->depth; i++) { /* those end whose last item this was */
		if (s->levels[(s->depth - 1) & (CJ_DEPTH - 1)].left)
			return CJ_GOES_ON;
		s->depth--;
	}
	return CJ_PASSED;
}

/* Reads the payload at this offset of the packet's payload by UDP, and copies the token. CJ_PASSED: there is one. */
static __noinline int cj_read_cbor(struct xdp_md *ctx, struct cj_scratch *s, __u32 payload)
{
	int verdict = CJ_GOES_ON;
	struct cj_head h;

	s->depth = 0;
	s->tagged = 0;
	s->found = 0;
	s->token_len = 0;
	if (!cj_read_head(s, &h) || h.major != CJ_MAP || cj_open(s, &h, 0) != CJ_GOES_ON)
		return CJ_PAYLOAD;
	if (!h.indefinite && !h.value)
		return s->at == s->len ? CJ_NO_TOKEN : CJ_PAYLOAD;
	for (int i = 0; i < CJ_MESSAGE && verdict == CJ_GOES_ON; i++) /* each item has a byte at least */
		verdict = cj_item(ctx, s, payload);
	if (verdict != CJ_PASSED)
		return verdict == CJ_GOES_ON ? CJ_PAYLOAD : verdict;
	if (s->at != s->len)
		return CJ_PAYLOAD;
	return s->found ? CJ_PASSED : CJ_NO_TOKEN;
}

#endif
