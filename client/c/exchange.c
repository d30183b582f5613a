// SPDX-License-Identifier: Apache-2.0
/* One attempt at a call: which packets to send, and what the packets that arrive mean. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define ACK_EVERY 16 /* packets of a request share an acknowledgement, which has room for 64 */

bool exchange_start(struct exchange *x, int64_t now, int64_t due, const struct header *head, const void *body,
		    uint32_t room, bool once)
{
	struct flight up = x->up, down = x->down;
	uint32_t max = x->max;

	free(x->reply);
	*x = (struct exchange){
		.head = *head, .body = body, .room = room, .max = max, .due = due, .moved = now, .down = down
	};
	x->packet_size = head->count > 1 ? LN_RPC_FRAGMENT : head->message_len;
	x->up.memory = up.memory;
	x->up.room = up.room;
	return flight_start(&x->up, head->count, once);
}

void exchange_free(struct exchange *x)
{
	free(x->reply);
	free(x->up.memory);
	free(x->down.memory);
}

static const uint8_t *fragment(const struct exchange *x, uint32_t i, uint32_t *len)
{
	uint32_t offset = i * x->packet_size;

	*len = MIN(x->packet_size, x->head.message_len - offset);
	return *len ? x->body + offset : NULL;
}

static void add_request(struct exchange *x, struct batch *b, uint32_t i, bool again, bool last)
{
	struct header h = x->head;
	uint32_t len, room = x->room;
	const uint8_t *p = fragment(x, i, &len);

	h.index = i;
	if (h.count > 1) {
		/* The last packet is padded, too: any packet may complete the message and so carry the reply. */
		room = LN_RPC_FRAGMENT;
		if (again || last || i == 0 || i % ACK_EVERY == ACK_EVERY - 1)
			h.flags |= LN_FLAG_ACK_WANTED;
	}
	if (again)
		h.flags |= LN_FLAG_RESEND;
	batch_add(b, &h, p, len, room);
}

static void add_pull(struct exchange *x, struct batch *b, uint32_t i, bool again)
{
	struct header h = x->head;
	const uint8_t *p = NULL;
	uint32_t len = 0;

	h.type = LN_TYPE_PULL;
	h.index = i;
	h.count = x->first.count;
	h.revision = x->first.revision;
	h.message_len = x->size;
	if (again)
		h.flags |= LN_FLAG_RESEND;
	if (x->head.count == 1)
		p = fragment(x, 0, &len);
	batch_add(b, &h, p, len, x->size);
}

/* sendable says whether the flight has one more packet to send now: the last one asks for an acknowledgement. */
static bool sendable(const struct flight *f)
{
	return f->outstanding < f->window && (f->lost || f->next < flight_limit(f));
}

int64_t exchange_poll(struct exchange *x, int64_t now, struct batch *b)
{
	struct flight *f = x->pulling ? &x->down : &x->up;
	uint32_t i;
	bool again;

	if (x->finished)
		return NEVER;
	if (x->due != NEVER)
		x->head.deadline_us = (uint32_t)MIN(MAX((x->due - now) / 1000, 1), UINT32_MAX);
	flight_expire(f, now);
	while (!batch_full(b) && flight_pick(f, now, &i, &again)) {
		if (again) {
			x->resent++;
			x->probed = x->probed || i > 0;
			x->silent += i == f->base;
		}
		if (x->pulling)
			add_pull(x, b, i, again);
		else
			add_request(x, b, i, again, b->count + 1 == BATCH_PACKETS || !sendable(f));
	}
	return sendable(f) ? now : f->expiry;
}

void exchange_release(struct exchange *x, struct batch *b)
{
	struct header h = x->head;

	if (x->head.count == 1 && x->first.count <= 1 && !(x->head.flags & LN_FLAG_ONCE))
		return;
	h.type = LN_TYPE_ACK;
	h.flags |= LN_FLAG_DONE;
	h.revision = x->first.revision;
	batch_add(b, &h, NULL, 0, 0);
}

static void fail(struct exchange *x, int result)
{
	x->result = result;
	x->finished = true;
}

static void put(struct exchange *x, uint32_t offset, const uint8_t *payload, uint32_t len)
{
	if (len)
		memcpy(x->reply + offset, payload, len);
}

/* pull fetches the rest of a reply whose first packet has arrived. */
static void pull(struct exchange *x)
{
	if (!x->guessed)
		flight_confirm_all(&x->up);
	x->pulling = true;
	if (x->first.count == 1) {
		x->finished = true;
		return;
	}
	if (!flight_start(&x->down, x->first.count, x->up.once)) {
		errno = ENOMEM;
		fail(x, LAMBDANIC_SYSTEM);
		return;
	}
	flight_start_behind_first(&x->down);
	if (x->guessed)
		x->down.window = 1;
}

/* begin takes h as the first response that arrived. */
static bool begin(struct exchange *x, const struct header *h, uint32_t size)
{
	uint8_t *reply;

	if (h->index > 0 && h->count != x->head.count) {
		x->malformed++;
		return false;
	}
	if (h->message_len > x->max) {
		fail(x, LAMBDANIC_REPLY_TOO_LARGE);
		return false;
	}
	reply = realloc(x->reply, MAX(h->message_len, 1));
	if (!reply) {
		fail(x, LAMBDANIC_SYSTEM);
		return false;
	}
	x->reply = reply;
	x->begun = true;
	x->first = *h;
	x->size = size;
	return true;
}

/*
 * whole says whether response h certainly answers the whole request. Otherwise it may be one of several responses, one per packet.
 * The two look alike if the reply has as many packets as the request. Then other packets decide: after an acknowledgement, h
 * answers the whole request; after a response to a later packet, only one packet. If a later packet was sent again, and still only
 * packet 0 is answered, a pull finds out.
 */
static bool whole(const struct exchange *x, const struct header *h)
{
	uint32_t n = x->head.count;

	return !x->parted && (n == 1 || h->count != n || x->acked || (h->flags & LN_FLAG_DONE));
}

/*
 * failed says whether the lambda failed on a packet of the request, or on all of it with h as the whole answer. Then the fate of
 * the other packets no longer matters.
 */
static bool failed(const struct exchange *x, const struct header *h)
{
	if (x->head.count == 1 || h->code == LN_STATUS_OK || (x->pulling && !x->guessed))
		return false;
	return h->index < x->head.count && (h->message_len == h->length || !whole(x, h));
}

/* end takes h as the whole answer, in place of what arrived before. */
static void end(struct exchange *x, const struct header *h, const uint8_t *payload)
{
	struct header all = *h;

	all.index = 0;
	all.count = 1;
	all.message_len = h->length;
	if (!begin(x, &all, h->length))
		return;
	put(x, 0, payload, h->length);
	x->finished = true;
}

/* contradicts says whether h belongs to another answer than the one that began. The first answer stays. */
static bool contradicts(struct exchange *x, const struct header *h, uint32_t size)
{
	const struct header *f = &x->first;

	if (h->count == f->count && h->message_len == f->message_len && h->code == f->code &&
	    h->revision == f->revision && size == x->size)
		return false;
	x->duplicates++;
	if (!x->pulling && h->revision != f->revision)
		fail(x, LN_CODE_STALE); /* in mode stream nobody will complete the first one */
	return true;
}

/* take puts one packet of the reply where it belongs. */
static void take(struct exchange *x, const struct header *h, uint32_t offset, const uint8_t *payload)
{
	struct flight *f;

	if (x->guessed && h->index >= x->down.next) /* it was not pulled: the guess was wrong */
		x->pulling = false;
	x->parted = x->parted || (!x->pulling && h->index > 0);
	f = x->pulling ? &x->down : &x->up;
	if (!flight_confirm(f, h->index)) {
		x->duplicates++;
		return;
	}
	put(x, offset, payload, h->length);
	x->finished = flight_done(f);
	if (x->guessed && x->pulling)
		flight_confirm(&x->up, h->index);
}

static void respond(struct exchange *x, const struct header *h, const uint8_t *payload)
{
	uint32_t offset, size;

	if (failed(x, h)) {
		end(x, h, payload);
		return;
	}
	if (!header_placement(h, &offset, &size)) {
		x->malformed++;
		return;
	}
	if ((!x->begun && !begin(x, h, size)) || contradicts(x, h, size))
		return;
	if (!x->pulling && whole(x, h)) {
		if (h->index != 0) {
			x->malformed++;
			return;
		}
		put(x, 0, payload, h->length);
		pull(x);
		return;
	}
	take(x, h, offset, payload);
	if (!x->finished && !x->pulling && !x->parted && x->probed) {
		x->guessed = true;
		pull(x);
	}
}

static void acknowledge(struct exchange *x, int64_t now, const struct header *h, const uint8_t *payload)
{
	uint32_t base = h->index & ~UINT32_C(63);
	uint64_t bits;

	if (h->length != sizeof(bits) || h->index >= x->head.count || x->head.count == 1) {
		x->malformed++;
		return;
	}
	if (x->pulling) {
		x->duplicates++;
		return;
	}
	x->acked = true;
	if (x->begun && !x->parted) {
		pull(x);
		return;
	}
	memcpy(&bits, payload, sizeof(bits));
	for (bits = be64toh(bits); bits; bits &= bits - 1)
		flight_confirm(&x->up, base + (uint32_t)__builtin_ctzll(bits));
	/* From the first grant on, the server decides how many packets of the request may be sent. */
	if (!h->grant)
		x->up.limit = UINT32_MAX;
	else if (x->up.limit == UINT32_MAX || h->grant > x->up.limit)
		x->up.limit = MAX(h->grant, FIRST_WINDOW);
	if (flight_done(&x->up))
		flight_doubt(&x->up, now);
}

/* reason notes what an error packet says, and returns its code. */
static int reason(struct exchange *x, const struct header *h)
{
	if (h->code == LN_CODE_TOO_LARGE)
		x->need = h->message_len;
	if (h->code == LN_CODE_LAMBDA_FAULT)
		x->fault = (uint8_t)MIN(h->message_len, UINT8_MAX);
	return h->code ? h->code : LN_CODE_MALFORMED;
}

static void refused(struct exchange *x, const struct header *h)
{
	if (h->code == LN_CODE_STALE && x->guessed) { /* wrong: there is nothing to pull */
		x->pulling = false;
		x->parted = true;
		return;
	}
	if (h->code == LN_CODE_BUSY &&
	    (x->head.flags & LN_FLAG_ONCE)) { /* it did not run: the growing resend intervals ease the load */
		x->told = LN_CODE_BUSY;
		return;
	}
	fail(x, reason(x, h));
}

void exchange_distrust(struct exchange *x, const struct header *h)
{
	if (h->type != LN_TYPE_ERROR)
		x->malformed++;
	else if (!x->finished)
		x->told = reason(x, h);
}

/*
 * progress notes whether the last packet advanced the exchange. It counts only upwards, so that a server whose packets have no
 * news cannot keep a call alive.
 */
static void progress(struct exchange *x, int64_t now)
{
	uint64_t n = x->up.base;

	if (x->pulling)
		n += x->down.base;
	if (n > x->reached) {
		x->reached = n;
		x->moved = now;
	}
}

void exchange_receive(struct exchange *x, int64_t now, const struct header *h, const uint8_t *payload)
{
	x->silent = 0;
	x->asked = false;
	if (x->finished)
		x->duplicates++;
	else if (h->workload != x->head.workload)
		x->malformed++;
	else if (h->type == LN_TYPE_ERROR)
		refused(x, h);
	else if (h->type == LN_TYPE_ACK)
		acknowledge(x, now, h, payload);
	else if (h->type == LN_TYPE_RESPONSE)
		respond(x, h, payload);
	else
		x->malformed++;
	progress(x, now);
}

bool exchange_asks(struct exchange *x, bool refusal)
{
	if (x->finished || x->asked || x->up.once || (x->head.flags & LN_FLAG_ONCE))
		return false;
	x->asked = refusal || x->silent >= LN_RPC_ASK_AFTER;
	return x->asked;
}
