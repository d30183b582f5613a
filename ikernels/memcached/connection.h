/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One connection to the server: what its requests change, and which of these writes the server has executed.
 *
 * A write has been executed when as many commands are answered as were read up to it, or one more if it need not be answered itself. All writes
 * have been executed when the server reads on, since a server reads when it has nothing more to do on a connection; except after a read
 * that filled its buffer, for then it may read on at once. In the text protocol only this shows that a write with "noreply" or the
 * like was executed: if it fails it may be answered after all, and nobody can tell for which command an answer is.
 *
 * A connection is lost while it is unknown where its commands begin: it was there before the observer, or said what no parser can
 * be sure of. Then each read counts as a write of every key. It is found again when the server twice answers a read that looks like whole
 * commands with as many answers.
 */
#ifndef MC_CONNECTION_H
#define MC_CONNECTION_H

#include "request.h"
#include "response.h"
#include "servers.h"

enum mc_connection_limit {
	MC_OUTSTANDING = 256, /* writes of one connection that are remembered one by one, a power of two */
	MC_FOUND = 2, /* matching exchanges after which a lost connection is found again */
	MC_PIECE = 512, /* bytes that are looked at together */
	MC_PIECES = 1 << 20, /* of one read or send */
	MC_DATAGRAM_HEADER = 8, /* bytes: request ID, number of the datagram, how many there are, and 0 */
	MC_NEVER = 1 << 30, /* more commands than are outstanding at once */
};

struct mc_piece {
	__u8 bytes[MC_PIECE];
};

struct mc_write {
	__u32 guard;
	__u32 answer; /* executed when so many commands are answered */
};

struct mc_connection {
	struct mc_server server;
	struct mc_request request;
	struct mc_response response;
	__u32 epoch; /* in which the server was found */
	__u32 at; /* TCP: the sequence number up to which the server has read */
	__u32 read; /* commands read that are always answered */
	__u32 answered; /* how many of them are answered */
	__u32 head, tail; /* of the writes: the next to end, and the next to be added */
	__u32 whole; /* the tail when the last whole command had been read */
	__u8 again; /* UDP: what was read last is looked at once more */
	__u8 header; /* UDP: bytes to come of the header before commands or answers */
	__u8 filled; /* the last read filled the server's buffer */
	__u8 unsure; /* which commands the answers are for: some need not be answered */
	__u8 more; /* more writes are outstanding than are remembered: the guard of all keys stands for them */
	__u8 lost;
	__u8 guess; /* while lost: what was read last looks like whole commands */
	__u8 matches; /* while lost: exchanges that matched */
	struct mc_write writes[MC_OUTSTANDING];
};

struct mc_ending {
	struct mc_connection *connection;
	__u32 keep; /* how many of the last writes stay */
	__u32 all; /* also those that are not answered */
};

static long mc_end_write(__u32 i, struct mc_ending *ending)
{
	struct mc_connection *c = ending->connection;
	struct mc_write *write = &c->writes[c->head & (MC_OUTSTANDING - 1)];

	if ((__s32)(c->tail - c->head) <= (__s32)ending->keep ||
	    (!ending->all && (__s32)(write->answer - c->answered) > 0))
		return 1;
	mc_write_ends(c->server.number, write->guard);
	c->head++;
	return 0;
}

static __noinline int mc_end_writes(struct mc_connection *c, __u32 keep, __u32 all)
{
	struct mc_ending ending = { .connection = c, .keep = keep, .all = all };

	if (!c)
		return 0;
	bpf_loop(MC_OUTSTANDING, mc_end_write, &ending, 0);
	if (all && c->more && c->request.phase == MC_PHASE_BEGIN) {
		mc_write_ends(c->server.number, MC_GUARD_ALL);
		c->more = 0;
	}
	return 0;
}

/* The server reads on: it has executed all writes but those of the command that is still incomplete. */
static __always_inline void mc_executed(struct mc_connection *c)
{
	if (c->head != c->tail || c->more)
		mc_end_writes(c, c->tail - c->whole, 1);
	/* Before it waits for a command, it sends its answers. Within one, it may read on with answers in hand. */
	if (c->unsure && c->request.phase == MC_PHASE_BEGIN) {
		c->unsure = 0;
		c->answered = c->read;
	}
}

/* The server has read a write. */
static __always_inline void mc_begin_write(struct mc_connection *c, __u32 guard, __u32 answer)
{
	struct mc_write *write = &c->writes[c->tail & (MC_OUTSTANDING - 1)];

	if (c->tail - c->head >= MC_OUTSTANDING) {
		if (!c->more)
			mc_write_begins(c->server.number, MC_GUARD_ALL);
		c->more = 1;
		return;
	}
	mc_write_begins(c->server.number, guard);
	write->guard = guard;
	write->answer = answer;
	c->tail++;
}

/* The server has read what may change any key. */
static __always_inline void mc_begin_any(struct mc_connection *c)
{
	mc_begin_write(c, MC_GUARD_ALL, c->read + MC_NEVER);
	mc_count(c->server.number, MC_COUNT_CHANGES_ALL);
	c->whole = c->tail;
}

static __always_inline void mc_lose_connection(struct mc_connection *c, enum mc_loss why)
{
	c->guess = 0;
	if (c->lost)
		return;
	mc_count_lost(c->server.number, why);
	c->lost = 1;
	c->matches = 0;
	c->request.phase = MC_PHASE_LOST;
	mc_begin_any(c);
}

/* Acts on what the request's next byte said. A guess only counts commands: its writes are covered already. */
MC_GLOBAL int mc_on_request(struct mc_connection *c, int event)
{
	struct mc_request *r;

	if (!c)
		return 0;
	r = &c->request;
	if (event == MC_LOST) {
		mc_lose_connection(c, MC_LOSS_COMMAND);
		return 0;
	}
	if (event != MC_TOUCH)
		c->read += !r->quiet;
	c->unsure |= r->quiet && r->protocol == MC_PROTOCOL_TEXT;
	if (!c->lost && event == MC_CHANGE_ALL) {
		mc_begin_write(c, MC_GUARD_ALL, c->read + r->quiet);
		mc_count(c->server.number, MC_COUNT_CHANGES_ALL);
	} else if (!c->lost && event != MC_READ) {
		mc_begin_write(c, mc_guard_of(r->key, c->server.guard_mask), c->read + (r->quiet || event == MC_TOUCH));
		if (!c->again)
			mc_count(c->server.number, MC_COUNT_CHANGES);
	}
	return 0;
}

/* Acts on what the response's next byte said. */
MC_GLOBAL int mc_on_response(struct mc_connection *c, int answer)
{
	if (!c)
		return 0;
	if (answer == MC_ANSWERED) {
		c->answered++;
	} else if (answer == MC_ANSWER_LOST) {
		mc_lose_connection(c, MC_LOSS_RESPONSE);
	}
	return 0;
}

/* Bytes of one piece. */
struct mc_bytes {
	struct mc_connection *connection;
	struct mc_piece *piece;
	__u32 at, len;
	__u32 sent; /* 1: the server has sent them; 0: it has read them */
};

static long mc_walk_byte(__u32 i, struct mc_bytes *b)
{
	struct mc_connection *c = b->connection;
	__u8 byte;

	if (i >= b->len)
		return 1;
	byte = b->piece->bytes[i & (MC_PIECE - 1)];
	b->at = i + 1; /* not counted up, since the verifier would follow each number */
	if (b->sent) {
		int answer = mc_response_byte(&c->response, c->request.protocol, byte);

		if (answer)
			mc_on_response(c, answer);
		return c->response.phase == MC_PHASE_VALUE;
	} else {
		int event = mc_request_byte(&c->request, byte);

		if (event)
			mc_on_request(c, event);
		if (c->request.phase == MC_PHASE_BEGIN)
			c->whole = c->tail;
		return c->request.phase == MC_PHASE_VALUE || c->request.phase == MC_PHASE_LOST;
	}
}

/* Looks at a piece's first bytes, up to the next value; how many these are. */
MC_GLOBAL int mc_walk_bytes(struct mc_connection *c, struct mc_piece *piece, __u32 len, __u32 sent)
{
	struct mc_bytes bytes = { .connection = c, .piece = piece, .len = len, .sent = sent };

	if (!c || !piece)
		return 0;
	bpf_loop(MC_PIECE, mc_walk_byte, &bytes, 0);
	return bytes.at;
}

/* Bytes that the server has read or sent, in its memory. */
struct mc_walk {
	struct mc_connection *connection;
	struct mc_piece *piece;
	__u64 address;
	__u64 left;
	__u32 sent;
};

/* Skips a datagram's header, which may end in the next element of the buffer's vector. */
static __always_inline void mc_skip_header(struct mc_walk *w)
{
	__u64 skip = w->connection->header;

	if (skip > w->left)
		skip = w->left;
	w->connection->header -= skip;
	w->address += skip;
	w->left -= skip;
}

/* Skips a value or else looks at the bytes of the next piece. */
static long mc_walk_piece(__u32 i, struct mc_walk *w)
{
	struct mc_connection *c = w->connection;
	__u64 skip = w->left, len;

	if (!w->left || (c->lost && !c->guess))
		return 1;
	if (c->header) {
		mc_skip_header(w);
		return 0;
	}
	skip = w->sent ? mc_response_skip(&c->response, skip) : mc_skip(&c->request, skip);
	if (!w->sent && c->request.phase == MC_PHASE_BEGIN)
		c->whole = c->tail;
	w->address += skip;
	w->left -= skip;
	if (!w->left)
		return 1;
	len = w->left < MC_PIECE ? w->left : MC_PIECE;
	if (bpf_probe_read_user(w->piece->bytes, len, (void *)w->address)) {
		mc_lose_connection(c, MC_LOSS_BYTES);
		return 1;
	}
	len = mc_walk_bytes(c, w->piece, len, w->sent);
	w->address += len;
	w->left -= len;
	return 0;
}

/* The server begins to look at what it has read: a lost connection is given the chance to be found again. */
static __always_inline void mc_begin_read(struct mc_connection *c, int filled)
{
	if (!c->filled)
		mc_executed(c);
	c->filled = filled;
	if (!c->lost)
		return;
	mc_begin_any(c);
	if (c->guess)
		c->matches = 0; /* the last guess was not answered */
	c->guess = 1;
	c->unsure = 0;
	c->read = 0;
	c->answered = 0;
	c->request.protocol = MC_PROTOCOL_NONE;
	c->request.phase = MC_PHASE_BEGIN;
	c->response.phase = MC_PHASE_BEGIN;
}

static __always_inline void mc_end_read(struct mc_connection *c)
{
	if (c->lost && (c->request.phase != MC_PHASE_BEGIN || !c->read || c->unsure))
		c->guess = 0;
}

static __always_inline void mc_end_send(struct mc_connection *c)
{
	if (!c->lost) {
		if (c->unsure)
			return;
		if ((__s32)(c->answered - c->read) > 0)
			mc_lose_connection(c, MC_LOSS_RESPONSE);
		else if (c->head != c->tail)
			mc_end_writes(c, 0, 0);
		return;
	}
	if (!c->guess || c->answered < c->read || c->response.phase != MC_PHASE_BEGIN)
		return;
	c->guess = 0;
	c->matches = c->answered == c->read ? c->matches + 1 : 0;
	if (c->matches == MC_FOUND) {
		mc_count(c->server.number, MC_COUNT_FOUND);
		c->lost = 0;
		c->whole = c->tail;
		mc_executed(c);
	}
}

#endif
