/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A token's header: JSON (RFC 8259), an object whose member alg is "HS256". */
#ifndef CJ_HEADER_H
#define CJ_HEADER_H

#include "scratch.h"

enum cj_state {
	CJ_BEGIN, /* the object */
	CJ_FIRST_NAME, /* a name, or the object's end */
	CJ_NAME,
	CJ_COLON,
	CJ_FIRST_VALUE, /* a value, or the array's end */
	CJ_VALUE,
	CJ_BEHIND, /* a value: a comma, or the end of what it is in */
	CJ_STRING,
	CJ_ESCAPE,
	CJ_DIGITS, /* of an escape */
	CJ_LITERAL,
	CJ_MINUS, /* the states of a number have the names of what was read last */
	CJ_ZERO,
	CJ_INTEGER,
	CJ_POINT,
	CJ_FRACTION,
	CJ_E,
	CJ_SIGN,
	CJ_EXPONENT,
	CJ_END, /* of the object */
	CJ_BAD,
};

/* Members that we read. */
enum cj_member {
	CJ_NO_MEMBER,
	CJ_ALG,
	CJ_KID,
};

/* FNV-1a, by which keys are found. */
#define CJ_HASH_BEGIN 0xcbf29ce484222325
#define CJ_HASH_PRIME 0x100000001b3

static __always_inline int cj_is_digit(__u8 c)
{
	return c >= '0' && c <= '9';
}

/* The value of a hexadecimal digit; -1: it is none. */
static __always_inline int cj_hex(__u8 c)
{
	if (cj_is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Adds a byte to the string at hand. */
static __always_inline void cj_add(struct cj_json *j, __u8 c)
{
	j->text = j->text << 8 | c;
	j->hash = (j->hash ^ c) * CJ_HASH_PRIME;
	j->len++;
}

static __always_inline __u32 cj_begin_string(struct cj_json *j, __u32 is_name)
{
	j->is_name = is_name;
	j->text = 0;
	j->hash = CJ_HASH_BEGIN;
	j->len = 0;
	return CJ_STRING;
}

/* The string at hand ends. Returns what comes next. */
static __always_inline __u32 cj_end_string(struct cj_json *j)
{
	if (j->depth == 1 && j->is_name) {
		j->member = CJ_NO_MEMBER;
		if (j->len == 3 && j->text == 0x616c67) /* "alg" */
			j->member = CJ_ALG;
		else if (j->len == 3 && j->text == 0x6b6964) /* "kid" */
			j->member = CJ_KID;
		if (j->member && j->seen & 1 << j->member)
			return CJ_BAD; /* twice: who knows which one the server takes */
		j->seen |= 1 << j->member;
	} else if (j->depth == 1) {
		if (j->member == CJ_ALG)
			j->is_hs256 = j->len == 5 && j->text == 0x4853323536; /* "HS256" */
		else if (j->member == CJ_KID)
			j->kid = j->hash;
	}
	return j->is_name ? CJ_COLON : CJ_BEHIND;
}

/* What comes behind a byte of a string. */
static __always_inline __u32 cj_in_string(struct cj_json *j, __u8 c)
{
	if (c == '"')
		return cj_end_string(j);
	if (c == '\\')
		return CJ_ESCAPE;
	if (c < ' ')
		return CJ_BAD;
	cj_add(j, c);
	return CJ_STRING;
}

static __always_inline __u32 cj_in_escape(struct cj_json *j, __u8 c)
{
	switch (c) {
	case 'u':
		j->digits = 4;
		j->unit = 0;
		return CJ_DIGITS;
	case 'b':
		c = '\b';
		break;
	case 'f':
		c = '\f';
		break;
	case 'n':
		c = '\n';
		break;
	case 'r':
		c = '\r';
		break;
	case 't':
		c = '\t';
		break;
	case '"':
	case '\\':
	case '/':
		break;
	default:
		return CJ_BAD;
	}
	cj_add(j, c);
	return CJ_STRING;
}

static __always_inline __u32 cj_in_digits(struct cj_json *j, __u8 c)
{
	int digit = cj_hex(c);

	if (digit < 0)
		return CJ_BAD;
	j->unit = j->unit << 4 | digit;
	if (--j->digits)
		return CJ_DIGITS;
	cj_add(j, j->unit < 0x80 ? j->unit : 0xff); /* what is not ASCII is in nothing that we look for */
	return CJ_STRING;
}

/* What comes behind a byte of a number. CJ_BEHIND: the byte is none of it. */
static __always_inline __u32 cj_in_number(__u32 state, __u8 c)
{
	switch (state) {
	case CJ_MINUS:
		return c == '0' ? CJ_ZERO : cj_is_digit(c) ? CJ_INTEGER : CJ_BAD;
	case CJ_ZERO:
	case CJ_INTEGER:
		if (state == CJ_INTEGER && cj_is_digit(c))
			return CJ_INTEGER;
		return c == '.' ? CJ_POINT : (c | 0x20) == 'e' ? CJ_E : CJ_BEHIND;
	case CJ_POINT:
		return cj_is_digit(c) ? CJ_FRACTION : CJ_BAD;
	case CJ_FRACTION:
		return cj_is_digit(c) ? CJ_FRACTION : (c | 0x20) == 'e' ? CJ_E : CJ_BEHIND;
	case CJ_E:
		if (c == '+' || c == '-')
			return CJ_SIGN;
		return cj_is_digit(c) ? CJ_EXPONENT : CJ_BAD;
	case CJ_SIGN:
		return cj_is_digit(c) ? CJ_EXPONENT : CJ_BAD;
	default:
		return cj_is_digit(c) ? CJ_EXPONENT : CJ_BEHIND;
	}
}

/* Opens an object or an array. Returns what comes next. */
static __always_inline __u32 cj_open_json(struct cj_json *j, __u32 is_object)
{
	if (j->depth >= CJ_NESTED)
		return CJ_BAD;
	j->depth++;
	j->objects = j->objects << 1 | is_object;
	return is_object ? CJ_FIRST_NAME : CJ_FIRST_VALUE;
}

static __always_inline __u32 cj_close_json(struct cj_json *j, __u32 is_object)
{
	if ((j->objects & 1) != is_object)
		return CJ_BAD;
	j->objects >>= 1;
	return --j->depth ? CJ_BEHIND : CJ_END;
}

static __always_inline __u32 cj_literal(struct cj_json *j, __u64 rest)
{
	j->text = rest;
	return CJ_LITERAL;
}

/* What comes behind the first byte of a value. */
static __always_inline __u32 cj_in_value(struct cj_json *j, __u8 c)
{
	switch (c) {
	case '"':
		return cj_begin_string(j, 0);
	case '{':
		return cj_open_json(j, 1);
	case '[':
		return cj_open_json(j, 0);
	case '-':
		return CJ_MINUS;
	case '0':
		return CJ_ZERO;
	case 't':
		return cj_literal(j, 0x657572); /* "rue", from its end */
	case 'f':
		return cj_literal(j, 0x65736c61); /* "alse" */
	case 'n':
		return cj_literal(j, 0x6c6c75); /* "ull" */
	}
	return cj_is_digit(c) ? CJ_INTEGER : CJ_BAD;
}

static __always_inline __u32 cj_in_literal(struct cj_json *j, __u8 c)
{
	if ((j->text & 0xff) != c)
		return CJ_BAD;
	j->text >>= 8;
	return j->text ? CJ_LITERAL : CJ_BEHIND;
}

/* What comes behind a byte between values. */
static __always_inline __u32 cj_between(struct cj_json *j, __u32 state, __u8 c)
{
	if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
		return state;
	switch (state) {
	case CJ_BEGIN:
		return c == '{' ? cj_open_json(j, 1) : CJ_BAD;
	case CJ_FIRST_NAME:
		if (c == '}')
			return cj_close_json(j, 1);
		return c == '"' ? cj_begin_string(j, 1) : CJ_BAD;
	case CJ_NAME:
		return c == '"' ? cj_begin_string(j, 1) : CJ_BAD;
	case CJ_COLON:
		return c == ':' ? CJ_VALUE : CJ_BAD;
	case CJ_FIRST_VALUE:
		return c == ']' ? cj_close_json(j, 0) : cj_in_value(j, c);
	case CJ_VALUE:
		return cj_in_value(j, c);
	case CJ_BEHIND:
		if (c == ',')
			return j->objects & 1 ? CJ_NAME : CJ_VALUE;
		return c == '}' ? cj_close_json(j, 1) : c == ']' ? cj_close_json(j, 0) : CJ_BAD;
	}
	return CJ_BAD;
}

/* Reads a byte; 0: it does not belong there. */
LN_GLOBAL int cj_byte(struct cj_scratch *s, __u32 c)
{
	struct cj_json *j;
	__u32 state;

	if (!s)
		return 0;
	j = &s->json;
	state = j->state;
	if (state >= CJ_MINUS && state <= CJ_EXPONENT)
		state = cj_in_number(state, c);
	else if (state == CJ_STRING)
		state = cj_in_string(j, c);
	else if (state == CJ_ESCAPE)
		state = cj_in_escape(j, c);
	else if (state == CJ_DIGITS)
		state = cj_in_digits(j, c);
	else if (state == CJ_LITERAL)
		state = cj_in_literal(j, c);
	else
		goto between;
	if (state != CJ_BEHIND || j->state < CJ_MINUS) {
		j->state = state;
		return state != CJ_BAD;
	}
between: /* or the byte behind a number */
	j->state = cj_between(j, state, c);
	return j->state != CJ_BAD;
}

/* Reads the decoded header. CJ_PASSED: it is for HS256. */
LN_GLOBAL int cj_read_header(struct cj_scratch *s)
{
	static const struct cj_json begin;
	__u32 len;

	if (!s)
		return CJ_TOKEN_FORM;
	s->json = begin;
	len = s->header_len;
	for (__u32 i = 0; i < CJ_HEADER && i < len; i++)
		if (!cj_byte(s, s->header[i]))
			return CJ_TOKEN_FORM;
	if (s->json.state != CJ_END)
		return CJ_TOKEN_FORM;
	return s->json.is_hs256 ? CJ_PASSED : CJ_ALGORITHM;
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
