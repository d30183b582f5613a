/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a server of memcached's protocols is asked, read as a stream of bytes that may be cut anywhere: which keys each command changes.
 *
 * Each byte is looked at once, values excepted, so that the state between two pieces is a few words and no command is ever
 * put together. The grammar is stricter than memcached's: what it would refuse, or what differs between its versions, ends in MC_LOST, and
 * the caller must take it that every key changes.
 */
#ifndef MC_REQUEST_H
#define MC_REQUEST_H

#include "command.h"
#include "hash.h"

enum mc_protocol {
	MC_PROTOCOL_NONE, /* nothing was read */
	MC_PROTOCOL_TEXT,
	MC_PROTOCOL_BINARY,
};

enum mc_phase {
	MC_PHASE_BEGIN, /* before a command */
	MC_PHASE_COMMAND, /* in its line, or in the header of the binary protocol */
	MC_PHASE_EXTRAS, /* binary: what stands between header and key */
	MC_PHASE_KEY, /* binary */
	MC_PHASE_VALUE,
	MC_PHASE_VALUE_END, /* text: in the line's end behind a value */
	MC_PHASE_LOST,
};

enum mc_limit {
	MC_KEY_MAX = 250, /* bytes */
	MC_VALUE_MAX = 1 << 30, /* bytes, as memcached's -I */
	MC_META_WORDS = 18, /* of a meta command; memcached takes a few more */
	MC_HEADER = 24, /* bytes of the binary protocol's header */
};

/* What the bytes read so far say. */
enum mc_event {
	MC_NOTHING, /* go on reading */
	MC_READ, /* a command that changes no key */
	MC_CHANGE, /* a command that changes the key with this hash, or gives it another expiry */
	MC_TOUCH, /* likewise, but the command goes on */
	MC_CHANGE_ALL, /* a command that may change any key */
	MC_LOST, /* where the next command begins is unknown, as is what the one at hand does */
};

/* Where the reader is in a stream of requests. All zero at the beginning of a connection. */
struct mc_request {
	__u64 skip; /* bytes of the value still to come */
	__u64 token; /* the last eight characters of the word at hand; binary: the last eight bytes */
	__u64 number; /* the word at hand as a number */
	__u64 hash; /* of the bytes of the word at hand */
	__u64 key; /* hash of the command's key */
	__u64 length; /* of the value that follows; binary: of all that follows the header */
	__u32 expiry; /* as the command says it; of flush_all the delay */
	__u32 token_len;
	__u32 at; /* binary: bytes read of the part at hand */
	__u16 key_len; /* binary */
	__u8 word; /* number of the word at hand; the command's name is 0 */
	__u8 protocol; /* enum mc_protocol */
	__u8 phase; /* enum mc_phase */
	__u8 class; /* enum mc_class */
	__u8 first; /* first character of the word at hand */
	__u8 not_number; /* the word at hand is none */
	__u8 negative; /* the word at hand begins with a minus */
	__u8 cr; /* a carriage return was read, and must end the line */
	__u8 quiet; /* the command at hand is answered in certain cases only */
	__u8 changes; /* meta get: a flag makes it change the key */
	__u8 encoded; /* meta: the key is in base64 */
	__u8 extras; /* binary: their length */
	__u8 opcode; /* binary */
};

static __always_inline void mc_begin_word(struct mc_request *r)
{
	r->token = 0;
	r->token_len = 0;
	r->number = 0;
	r->not_number = 0;
	r->negative = 0;
	r->hash = mc_hash_begin();
}

static __always_inline void mc_begin_command(struct mc_request *r)
{
	mc_begin_word(r);
	r->phase = MC_PHASE_COMMAND;
	r->class = MC_CLASS_BAD;
	r->key = 0;
	r->expiry = 0;
	r->word = 0;
	r->cr = 0;
	r->quiet = 0;
	r->changes = 0;
	r->encoded = 0;
	r->at = 0;
}

static __always_inline enum mc_event mc_lose(struct mc_request *r)
{
	r->phase = MC_PHASE_LOST;
	return MC_LOST;
}

/* A flag of a meta command: its letter, and for some a token behind it. */
static __always_inline void mc_meta_flag(struct mc_request *r)
{
	switch (r->first) {
	case 'q':
		r->quiet = 1;
		break;
	case 'b':
		r->encoded = 1;
		break;
	/* What only asks: hit before, key, time since, size, client flags, time to live, value, cas, opaque. */
	case 'h':
	case 'k':
	case 'l':
	case 's':
	case 'f':
	case 't':
	case 'v':
	case 'c':
	case 'O':
		break;
	default:
		r->changes = 1;
	}
}

/* Whether the word at hand is the line's key. */
static __always_inline int mc_is_key(const struct mc_request *r)
{
	return r->class == MC_CLASS_GAT ? r->word >= 2 : r->class == MC_CLASS_GET ? r->word >= 1 : r->word == 1;
}

static __always_inline int mc_is_number(const struct mc_request *r, __u64 most)
{
	return !r->not_number && !r->negative && r->number <= most;
}

/* The word at hand is the length of the value that follows. */
static __always_inline enum mc_event mc_end_length(struct mc_request *r)
{
	r->length = r->number;
	return mc_is_number(r, MC_VALUE_MAX) ? MC_NOTHING : mc_lose(r);
}

/* A word behind the key of set and the like. For memcached no value follows where one is wrong, or where there are too many. */
static __always_inline enum mc_event mc_end_store_word(struct mc_request *r)
{
	int good = 1;

	switch (r->word) {
	case 2: /* flags */
		good = mc_is_number(r, 0xffffffff);
		break;
	case 3:
		good = !r->not_number && r->number <= 0x7fffffff && r->token_len > r->negative;
		r->expiry = r->negative ? -r->number : r->number;
		break;
	case 4:
		return mc_end_length(r);
	case 5: /* the version, or noreply */
		good = r->class == MC_CLASS_STORE || (mc_is_number(r, ~0ULL) && r->token_len < 20);
		break;
	default: /* noreply */
		good = r->class == MC_CLASS_CAS && r->word == 6;
	}
	return good ? MC_NOTHING : mc_lose(r);
}

/* A word behind a meta command's key. */
static __always_inline enum mc_event mc_end_meta_word(struct mc_request *r)
{
	if (r->class == MC_CLASS_META_STORE && r->word == 2)
		return mc_end_length(r);
	mc_meta_flag(r);
	return r->word < MC_META_WORDS ? MC_NOTHING : mc_lose(r);
}

/* The word at hand has ended. */
static __always_inline enum mc_event mc_end_word(struct mc_request *r)
{
	enum mc_event event = MC_NOTHING;

	if (r->class >= MC_CLASS_STORE && r->class <= MC_CLASS_FLUSH) /* the last word counts, whatever its place is */
		r->quiet = r->token_len == 7 && r->token == MC_NOREPLY;
	if (!r->word) {
		r->class = mc_text_class(r->token, r->token_len);
		if (r->class == MC_CLASS_BAD)
			return mc_lose(r);
	} else if (r->class == MC_CLASS_FLUSH) {
		if (r->word == 1)
			r->expiry = r->not_number ? 0 : r->number;
	} else if (r->class <= MC_CLASS_META_CHANGE && mc_is_key(r)) {
		if (r->token_len > MC_KEY_MAX)
			return mc_lose(r);
		r->key = mc_hash_end(r->hash);
		if (r->class == MC_CLASS_GAT)
			event = MC_TOUCH;
	} else if (r->class == MC_CLASS_STORE || r->class == MC_CLASS_CAS) {
		event = mc_end_store_word(r);
	} else if (r->class >= MC_CLASS_META_GET && r->class <= MC_CLASS_META_CHANGE) {
		event = mc_end_meta_word(r);
	}
	if (r->word < 255)
		r->word++;
	mc_begin_word(r);
	return event;
}

/* What a command does that names one key. */
static __always_inline enum mc_event mc_change(const struct mc_request *r)
{
	return r->encoded ? MC_CHANGE_ALL : MC_CHANGE;
}

/* The line has ended, and with it the command or what stands before its value. */
static __always_inline enum mc_event mc_end_line(struct mc_request *r)
{
	static const __u8 least[] = { 255, 2, 3, 5, 6, 2, 1, 2, 3, 2, 1, 1 }; /* words, by enum mc_class */

	if (r->class >= sizeof(least) || r->word < least[r->class])
		return mc_lose(r);
	r->phase = MC_PHASE_BEGIN;
	switch (r->class) {
	case MC_CLASS_STORE:
	case MC_CLASS_CAS:
	case MC_CLASS_META_STORE:
		r->skip = r->length;
		r->phase = r->skip ? MC_PHASE_VALUE : MC_PHASE_VALUE_END;
		r->cr = 0;
		return mc_change(r);
	case MC_CLASS_META_GET:
		return r->changes ? mc_change(r) : MC_READ;
	case MC_CLASS_GAT:
	case MC_CLASS_CHANGE:
	case MC_CLASS_META_CHANGE:
		return mc_change(r);
	case MC_CLASS_FLUSH:
		return MC_CHANGE_ALL;
	}
	return MC_READ;
}

/* A byte of a line. */
static __always_inline enum mc_event mc_text_byte(struct mc_request *r, __u8 c)
{
	enum mc_event event = MC_NOTHING;

	if (c == '\n' || (c == ' ' && !r->cr)) {
		if (r->token_len)
			event = mc_end_word(r);
		return c == ' ' || event == MC_LOST ? event : mc_end_line(r);
	}
	if (r->cr || !c)
		return mc_lose(r);
	if (c == '\r') {
		r->cr = 1;
		return MC_NOTHING;
	}
	if (!r->token_len)
		r->first = c;
	r->token = r->token << 8 | c;
	r->token_len++;
	r->hash = mc_hash_byte(r->hash, c);
	if (c == '-' && r->token_len == 1)
		r->negative = 1;
	else if (c < '0' || c > '9')
		r->not_number = 1;
	else if (r->number <= 0xffffffff) /* what is longer is too large for all that has a limit */
		r->number = r->number * 10 + (c - '0');
	return MC_NOTHING;
}

/* A byte of the line's end behind a value. */
static __always_inline enum mc_event mc_value_end(struct mc_request *r, __u8 c)
{
	if (r->cr ? c != '\n' : c != '\r')
		return mc_lose(r);
	if (r->cr)
		r->phase = MC_PHASE_BEGIN;
	r->cr = !r->cr;
	return MC_NOTHING;
}

/* The key of a binary command has ended, or there is none. */
static __always_inline enum mc_event mc_end_binary_key(struct mc_request *r)
{
	r->skip = r->length - r->extras - r->key_len;
	r->phase = r->skip ? MC_PHASE_VALUE : MC_PHASE_BEGIN;
	r->key = mc_hash_end(r->hash);
	switch (r->class) {
	case MC_CLASS_GAT:
	case MC_CLASS_STORE:
	case MC_CLASS_CHANGE:
		return r->key_len ? MC_CHANGE : mc_lose(r);
	case MC_CLASS_FLUSH:
		return MC_CHANGE_ALL;
	}
	return MC_READ;
}

/* A byte of a binary command's header. */
static __always_inline enum mc_event mc_header_byte(struct mc_request *r)
{
	switch (r->at) {
	case 1:
		if (r->token != 0x80)
			return mc_lose(r);
		break;
	case 2:
		r->opcode = r->token;
		r->class = mc_binary_class(r->opcode);
		r->quiet = mc_binary_quiet(r->opcode);
		break;
	case 4:
		r->key_len = r->token;
		break;
	case 5:
		r->extras = r->token;
		break;
	case 12:
		r->length = r->token & 0xffffffff;
		break;
	case MC_HEADER:
		if (r->class == MC_CLASS_BAD || r->key_len > MC_KEY_MAX || r->length > MC_VALUE_MAX ||
		    r->extras + r->key_len > r->length ||
		    (r->extras + r->key_len < r->length && !mc_binary_has_value(r->opcode)))
			return mc_lose(r);
		r->at = 0;
		r->phase = r->extras ? MC_PHASE_EXTRAS : MC_PHASE_KEY;
		if (!r->extras && !r->key_len)
			return mc_end_binary_key(r);
	}
	return MC_NOTHING;
}

/* A byte before a binary command's value. */
static __always_inline enum mc_event mc_binary_byte(struct mc_request *r, __u8 c)
{
	r->at++;
	if (r->phase == MC_PHASE_COMMAND) {
		r->token = r->token << 8 | c;
		return mc_header_byte(r);
	}
	if (r->phase == MC_PHASE_EXTRAS) {
		r->expiry = r->expiry << 8 | c; /* the last four */
		if (r->at < r->extras)
			return MC_NOTHING;
		r->at = 0;
		r->phase = MC_PHASE_KEY;
		return r->key_len ? MC_NOTHING : mc_end_binary_key(r);
	}
	r->hash = mc_hash_byte(r->hash, c);
	return r->at < r->key_len ? MC_NOTHING : mc_end_binary_key(r);
}

/* Takes the next byte in. A byte of a value may be skipped instead, with all that follow it (mc_skip). */
MC_GLOBAL int mc_request_byte(struct mc_request *r, __u8 c)
{
	if (!r)
		return MC_LOST;
	if (r->phase == MC_PHASE_BEGIN) {
		mc_begin_command(r);
		if (r->protocol == MC_PROTOCOL_NONE)
			r->protocol = c == 0x80 ? MC_PROTOCOL_BINARY : MC_PROTOCOL_TEXT;
	}
	if (r->phase == MC_PHASE_LOST)
		return MC_LOST;
	if (r->phase == MC_PHASE_VALUE_END)
		return mc_value_end(r, c);
	return r->protocol == MC_PROTOCOL_BINARY ? mc_binary_byte(r, c) : mc_text_byte(r, c);
}

/* Skips what the next bytes, at most len, are of a value; how many these are. */
static __always_inline __u64 mc_skip(struct mc_request *r, __u64 len)
{
	if (r->phase != MC_PHASE_VALUE)
		return 0;
	if (r->skip > len) {
		r->skip -= len;
		return len;
	}
	len = r->skip;
	r->skip = 0;
	r->phase = r->protocol == MC_PROTOCOL_TEXT ? MC_PHASE_VALUE_END : MC_PHASE_BEGIN;
	return len;
}

#endif
