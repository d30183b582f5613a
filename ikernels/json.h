/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads an object in JSON (RFC 8259), byte by byte. What is of interest in it, its reader knows: it defines struct js_values before it includes this file, and
 * the functions that are declared below behind it.
 */
#ifndef IK_JSON_H
#define IK_JSON_H

#include "../bpf/parse.h"

#define JS_NESTED 32 /* arrays and objects within each other */

enum js_state {
	JS_BEGIN, /* the object */
	JS_FIRST_NAME, /* a name, or the object's end */
	JS_NAME,
	JS_COLON,
	JS_FIRST_VALUE, /* a value, or the array's end */
	JS_VALUE,
	JS_BEHIND, /* a value: a comma, or the end of what it is in */
	JS_STRING,
	JS_ESCAPE,
	JS_DIGITS, /* of an escape */
	JS_LITERAL,
	JS_MINUS, /* the states of a number have the names of what was read last */
	JS_ZERO,
	JS_INTEGER,
	JS_POINT,
	JS_FRACTION,
	JS_E,
	JS_SIGN,
	JS_EXPONENT,
	JS_END, /* of the object */
	JS_BAD,
};

/* Where we are. */
struct js_reader {
	__u32 state; /* enum js_state */
	__u32 depth; /* how many arrays and objects are open */
	__u32 objects; /* a bit for each of these, the lowest for the innermost: 1 for an object */
	__u32 digits; /* that are still to come of an escape */
	__u32 unit; /* what it stands for */
	__u32 is_name; /* the string is the name of a member */
	__u64 rest; /* what is still to come of a literal */
	struct js_values values;
};

/* What the reader does when a value begins with c, a string begins, it goes on by a byte or by a unit of UTF-16 (an escape), and it ends: a name or another. */
static __always_inline void js_begin_value(struct js_reader *r, __u8 c);
static __always_inline void js_begin_text(struct js_reader *r);
static __always_inline void js_add(struct js_reader *r, __u8 c);
static __always_inline void js_add_unit(struct js_reader *r, __u32 unit);
static __always_inline int js_end_name(struct js_reader *r); /* 0: it may not be there */
static __always_inline void js_end_text(struct js_reader *r);

/* And when a number goes on: those bytes behind its first. */
static __always_inline void js_add_digit(struct js_reader *r, __u8 c);

static __always_inline int js_is_digit(__u8 c)
{
	return c >= '0' && c <= '9';
}

/* The value of a hexadecimal digit; -1: it is none. */
static __always_inline int js_hex(__u8 c)
{
	if (js_is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static __always_inline __u32 js_begin_string(struct js_reader *r, __u32 is_name)
{
	r->is_name = is_name;
	js_begin_text(r);
	return JS_STRING;
}

/* The string at hand ends. Returns what comes next. */
static __always_inline __u32 js_end_string(struct js_reader *r)
{
	if (r->is_name)
		return js_end_name(r) ? JS_COLON : JS_BAD;
	js_end_text(r);
	return JS_BEHIND;
}

/* What comes behind a byte of a string. */
static __always_inline __u32 js_in_string(struct js_reader *r, __u8 c)
{
	if (c == '"')
		return js_end_string(r);
	if (c == '\\')
		return JS_ESCAPE;
	if (c < ' ')
		return JS_BAD;
	js_add(r, c);
	return JS_STRING;
}

static __always_inline __u32 js_in_escape(struct js_reader *r, __u8 c)
{
	switch (c) {
	case 'u':
		r->digits = 4;
		r->unit = 0;
		return JS_DIGITS;
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
		return JS_BAD;
	}
	js_add(r, c);
	return JS_STRING;
}

static __always_inline __u32 js_in_digits(struct js_reader *r, __u8 c)
{
	int digit = js_hex(c);

	if (digit < 0)
		return JS_BAD;
	r->unit = r->unit << 4 | digit;
	if (--r->digits)
		return JS_DIGITS;
	js_add_unit(r, r->unit);
	return JS_STRING;
}

/* What comes behind a byte of a number. JS_BEHIND: the byte is none of it. */
static __always_inline __u32 js_in_number(__u32 state, __u8 c)
{
	switch (state) {
	case JS_MINUS:
		return c == '0' ? JS_ZERO : js_is_digit(c) ? JS_INTEGER : JS_BAD;
	case JS_ZERO:
	case JS_INTEGER:
		if (state == JS_INTEGER && js_is_digit(c))
			return JS_INTEGER;
		return c == '.' ? JS_POINT : (c | 0x20) == 'e' ? JS_E : JS_BEHIND;
	case JS_POINT:
		return js_is_digit(c) ? JS_FRACTION : JS_BAD;
	case JS_FRACTION:
		return js_is_digit(c) ? JS_FRACTION : (c | 0x20) == 'e' ? JS_E : JS_BEHIND;
	case JS_E:
		if (c == '+' || c == '-')
			return JS_SIGN;
		return js_is_digit(c) ? JS_EXPONENT : JS_BAD;
	case JS_SIGN:
		return js_is_digit(c) ? JS_EXPONENT : JS_BAD;
	default:
		return js_is_digit(c) ? JS_EXPONENT : JS_BEHIND;
	}
}

/* Opens an object or an array. Returns what comes next. */
static __always_inline __u32 js_open(struct js_reader *r, __u32 is_object)
{
	if (r->depth >= JS_NESTED)
		return JS_BAD;
	r->depth++;
	r->objects = r->objects << 1 | is_object;
	return is_object ? JS_FIRST_NAME : JS_FIRST_VALUE;
}

static __always_inline __u32 js_close(struct js_reader *r, __u32 is_object)
{
	if ((r->objects & 1) != is_object)
		return JS_BAD;
	r->objects >>= 1;
	return --r->depth ? JS_BEHIND : JS_END;
}

static __always_inline __u32 js_literal(struct js_reader *r, __u64 rest)
{
	r->rest = rest;
	return JS_LITERAL;
}

/* What comes behind the first byte of a value. */
static __always_inline __u32 js_in_value(struct js_reader *r, __u8 c)
{
	js_begin_value(r, c);
	switch (c) {
	case '"':
		return js_begin_string(r, 0);
	case '{':
		return js_open(r, 1);
	case '[':
		return js_open(r, 0);
	case '-':
		return JS_MINUS;
	case '0':
		return JS_ZERO;
	case 't':
		return js_literal(r, 0x657572); /* "rue", from its end */
	case 'f':
		return js_literal(r, 0x65736c61); /* "alse" */
	case 'n':
		return js_literal(r, 0x6c6c75); /* "ull" */
	}
	return js_is_digit(c) ? JS_INTEGER : JS_BAD;
}

static __always_inline __u32 js_in_literal(struct js_reader *r, __u8 c)
{
	if ((r->rest & 0xff) != c)
		return JS_BAD;
	r->rest >>= 8;
	return r->rest ? JS_LITERAL : JS_BEHIND;
}

/* What comes behind a byte between values. */
static __always_inline __u32 js_between(struct js_reader *r, __u32 state, __u8 c)
{
	if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
		return state;
	switch (state) {
	case JS_BEGIN:
		return c == '{' ? js_open(r, 1) : JS_BAD;
	case JS_FIRST_NAME:
		if (c == '}')
			return js_close(r, 1);
		return c == '"' ? js_begin_string(r, 1) : JS_BAD;
	case JS_NAME:
		return c == '"' ? js_begin_string(r, 1) : JS_BAD;
	case JS_COLON:
		return c == ':' ? JS_VALUE : JS_BAD;
	case JS_FIRST_VALUE:
		return c == ']' ? js_close(r, 0) : js_in_value(r, c);
	case JS_VALUE:
		return js_in_value(r, c);
	case JS_BEHIND:
		if (c == ',')
			return r->objects & 1 ? JS_NAME : JS_VALUE;
		return c == '}' ? js_close(r, 1) : c == ']' ? js_close(r, 0) : JS_BAD;
	}
	return JS_BAD;
}

/* Reads a byte; 0: it does not belong there. */
static __always_inline int js_read(struct js_reader *r, __u32 c)
{
	__u32 state = r->state;

	if (state >= JS_MINUS && state <= JS_EXPONENT) {
		state = js_in_number(state, c);
		if (state != JS_BEHIND)
			js_add_digit(r, c);
	} else if (state == JS_STRING) {
		state = js_in_string(r, c);
	} else if (state == JS_ESCAPE) {
		state = js_in_escape(r, c);
	} else if (state == JS_DIGITS) {
		state = js_in_digits(r, c);
	} else if (state == JS_LITERAL) {
		state = js_in_literal(r, c);
	} else {
		goto between;
	}
	if (state != JS_BEHIND || r->state < JS_MINUS) {
		r->state = state;
		return state != JS_BAD;
	}
between: /* or the byte behind a number */
	r->state = js_between(r, state, c);
	return r->state != JS_BAD;
}

#endif
