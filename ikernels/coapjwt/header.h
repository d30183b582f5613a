/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A token's header: JSON, an object whose member alg is "HS256". */
#ifndef CJ_HEADER_H
#define CJ_HEADER_H

#include "../../bpf/hash.h"
#include "scratch.h"

/* Members that we read. */
enum cj_member {
	CJ_NO_MEMBER,
	CJ_ALG,
	CJ_KID,
};

static __always_inline void js_begin_value(struct js_reader *r, __u8 c)
{
}

static __always_inline void js_add_digit(struct js_reader *r, __u8 c)
{
}

static __always_inline void js_begin_text(struct js_reader *r)
{
	r->values.text = 0;
	r->values.hash = LN_FNV_BEGIN;
	r->values.len = 0;
}

static __always_inline void js_add(struct js_reader *r, __u8 c)
{
	struct js_values *v = &r->values;

	v->text = v->text << 8 | c;
	v->hash = ln_fnv_byte(v->hash, c); /* FNV-1a, by which keys are found */
	v->len++;
}

static __always_inline void js_add_unit(struct js_reader *r, __u32 unit)
{
	js_add(r, unit < 0x80 ? unit : 0xff); /* what is not ASCII is in nothing that we look for */
}

static __always_inline int js_end_name(struct js_reader *r)
{
	struct js_values *v = &r->values;

	if (r->depth != 1)
		return 1;
	v->member = CJ_NO_MEMBER;
	if (v->len == 3 && v->text == 0x616c67) /* "alg" */
		v->member = CJ_ALG;
	else if (v->len == 3 && v->text == 0x6b6964) /* "kid" */
		v->member = CJ_KID;
	if (v->member && v->seen & 1 << v->member)
		return 0; /* twice: who knows which one the server takes */
	v->seen |= 1 << v->member;
	return 1;
}

static __always_inline void js_end_text(struct js_reader *r)
{
	struct js_values *v = &r->values;

	if (r->depth != 1)
		return;
	if (v->member == CJ_ALG)
		v->is_hs256 = v->len == 5 && v->text == 0x4853323536; /* "HS256" */
	else if (v->member == CJ_KID)
		v->kid = v->hash;
}

/* Reads a byte; 0: it does not belong there. */
LN_GLOBAL int cj_byte(struct cj_scratch *s, __u32 c)
{
	return s ? js_read(&s->json, c) : 0;
}

/* Reads the decoded header. CJ_PASSED: it is for HS256. */
LN_GLOBAL int cj_read_header(struct cj_scratch *s)
{
	static const struct js_reader begin;
	__u32 len;

	if (!s)
		return CJ_TOKEN_FORM;
	s->json = begin;
	len = s->header_len;
	for (__u32 i = 0; i < CJ_HEADER && i < len; i++)
		if (!cj_byte(s, s->header[i]))
			return CJ_TOKEN_FORM;
	if (s->json.state != JS_END)
		return CJ_TOKEN_FORM;
	return s->json.values.is_hs256 ? CJ_PASSED : CJ_ALGORITHM;
}

/* Whether the token begins with this, a multiple of four characters. */
#define cj_begins(s, text) \
	({ \
		__u32 differs = 0; \
		for (int i = 0; i < sizeof(text) - 1; i += 4) \
			differs |= *(const __u32 *)((s)->token + i) ^ *(const __u32 *)((text) + i); \
		!differs; \
	})

/* The length of the header if it is one of those that most libraries write, which need not be read; 0: it is another. */
static __always_inline __u32 cj_usual(const struct cj_scratch *s)
{
	static const char alg_typ[] = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"; /* {"alg":"HS256","typ":"JWT"} */
	static const char typ_alg[] = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9"; /* {"typ":"JWT","alg":"HS256"} */

	if (s->token[sizeof(alg_typ) - 1] != '.')
		return 0;
	return cj_begins(s, alg_typ) || cj_begins(s, typ_alg) ? sizeof(alg_typ) - 1 : 0;
}

#endif
