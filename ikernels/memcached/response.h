/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a server of memcached's protocols answers, read as a stream of bytes that may be cut anywhere: how many commands are answered.
 * Answers come in the order of their commands.
 */
#ifndef MC_RESPONSE_H
#define MC_RESPONSE_H

#include "command.h"
#include "request.h"

/* What the bytes read so far say. */
enum mc_answer {
	MC_ANSWER_NONE, /* go on reading */
	MC_ANSWERED, /* a command is answered that is always answered */
	MC_ANSWERED_QUIET, /* a command is answered that need not have been */
	MC_ANSWER_LOST, /* where the next answer begins is unknown */
};

/* Where the reader is in a stream of responses. All zero at the beginning of a connection. */
struct mc_response {
	__u64 skip; /* bytes of a value, or of a line, still to come */
	__u64 token; /* the last eight characters of the word at hand; binary: the last eight bytes */
	__u64 name; /* the line's first word */
	__u32 number; /* the word at hand as a number */
	__u32 size; /* of the value behind the line */
	__u8 word; /* number of the word at hand */
	__u8 token_len;
	__u8 name_len;
	__u8 phase; /* enum mc_phase: BEGIN, COMMAND or VALUE */
	__u8 at; /* binary: bytes read of the header */
	__u8 opcode; /* binary */
	__u8 more; /* binary: another response to the same command follows */
};

static __always_inline void mc_end_response_word(struct mc_response *r)
{
	if (!r->word) {
		r->name = r->token;
		r->name_len = r->token_len;
	} else if ((r->word == 3 && r->name == MC_NAME5('V', 'A', 'L', 'U', 'E')) ||
		   (r->word == 1 && r->name == MC_NAME2('V', 'A'))) {
		r->size = r->number;
	}
	if (r->word < 255)
		r->word++;
	r->token = 0;
	r->token_len = 0;
	r->number = 0;
}

/* What a whole line says. */
static __always_inline enum mc_answer mc_end_response_line(struct mc_response *r)
{
	int value = r->name_len == 5 && r->name == MC_NAME5('V', 'A', 'L', 'U', 'E');
	int meta = r->name_len == 2 && r->name == MC_NAME2('V', 'A');

	r->phase = MC_PHASE_BEGIN;
	if (value || meta) {
		if (r->size > MC_VALUE_MAX)
			return MC_ANSWER_LOST;
		r->skip = (__u64)r->size + 2; /* with the line's end */
		r->phase = MC_PHASE_VALUE;
		return meta ? MC_ANSWERED : MC_ANSWER_NONE;
	}
	switch (r->name) {
	case MC_NAME4('S', 'T', 'A', 'T'):
	case MC_NAME4('I', 'T', 'E', 'M'):
	case MC_NAME6('P', 'R', 'E', 'F', 'I', 'X'):
		return MC_ANSWER_NONE;
	}
	return MC_ANSWERED;
}

/* A byte of a line. */
static __always_inline enum mc_answer mc_response_text(struct mc_response *r, __u8 c)
{
	if (c == ' ' || c == '\r') {
		if (r->token_len)
			mc_end_response_word(r);
		return MC_ANSWER_NONE;
	}
	if (c == '\n') {
		if (r->token_len)
			mc_end_response_word(r);
		return mc_end_response_line(r);
	}
	r->token = r->token << 8 | c;
	if (r->token_len < 255)
		r->token_len++;
	r->number = r->number * 10 + (__u8)(c - '0');
	return MC_ANSWER_NONE;
}

/* A byte of the header of a binary response. */
static __always_inline enum mc_answer mc_response_header(struct mc_response *r, __u8 c)
{
	__u8 at = ++r->at;

	r->token = r->token << 8 | c;
	if (at == 1 && c != 0x81)
		return MC_ANSWER_LOST;
	if (at == 2)
		r->opcode = c;
	if (at == 4) /* the last of the responses to stat has no key */
		r->more = r->opcode == 0x10 && (r->token & 0xffff);
	if (at == 12)
		r->size = r->token;
	if (at < MC_HEADER)
		return MC_ANSWER_NONE;
	if (r->size > MC_VALUE_MAX)
		return MC_ANSWER_LOST;
	r->skip = r->size;
	r->phase = r->skip ? MC_PHASE_VALUE : MC_PHASE_BEGIN;
	return r->more ? MC_ANSWER_NONE : mc_binary_quiet(r->opcode) ? MC_ANSWERED_QUIET : MC_ANSWERED;
}

/* Takes the next byte in, which is in no value. */
MC_GLOBAL int mc_response_byte(struct mc_response *r, __u8 protocol, __u8 c)
{
	if (!r)
		return MC_ANSWER_LOST;
	if (r->phase == MC_PHASE_BEGIN) {
		r->phase = MC_PHASE_COMMAND;
		r->token = 0;
		r->token_len = 0;
		r->number = 0;
		r->name = 0;
		r->name_len = 0;
		r->word = 0;
		r->size = 0;
		r->at = 0;
		r->more = 0;
	}
	return protocol == MC_PROTOCOL_BINARY ? mc_response_header(r, c) : mc_response_text(r, c);
}

/* Skips what the next bytes, at most len, are of a value; how many these are. */
static __always_inline __u64 mc_response_skip(struct mc_response *r, __u64 len)
{
	if (r->phase != MC_PHASE_VALUE)
		return 0;
	if (r->skip > len) {
		r->skip -= len;
		return len;
	}
	len = r->skip;
	r->skip = 0;
	r->phase = MC_PHASE_BEGIN;
	return len;
}

#endif
