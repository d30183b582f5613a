// SPDX-License-Identifier: Apache-2.0
/*
 * The window follows TCP's additive increase and multiplicative decrease (RFC 5681), with a floor that keeps enough packets
 * coming behind a lost one to notice the loss. Intervals are docs/protocol.md's.
 */
#include <stdlib.h>

#include "internal.h"

#define LAST_INTERVAL (500 * MS)
#define MIN_WINDOW 32
#define MAX_WINDOW 512
#define REORDER_LIMIT 8 /* a packet counts as lost once a packet sent so many transmissions later is confirmed */

enum { WAITING, LOST, CONFIRMED };

static struct slot *at(struct flight *f, uint32_t i)
{
	return &f->ring[i % f->len];
}

/* interval is how long to wait for a confirmation before sending again. */
static int64_t interval(const struct slot *s)
{
	return MIN(FIRST_INTERVAL << MIN(s->tries, 5), LAST_INTERVAL);
}

bool flight_start(struct flight *f, uint32_t count, bool once)
{
	struct slot *memory = f->memory;
	uint32_t len = MIN(count, MAX_WINDOW), room = f->room;

	if (len > 1 && len > room) {
		memory = realloc(f->memory, len * sizeof(*memory));
		if (!memory)
			return false;
		room = len;
	}
	*f = (struct flight){
		.count = count,
		.once = once,
		.limit = UINT32_MAX,
		.len = len,
		.memory = memory,
		.room = room,
		.window = FIRST_WINDOW,
		.threshold = MAX_WINDOW,
		.expiry = NEVER,
	};
	f->ring = len > 1 ? memory : &f->single;
	return true;
}

void flight_start_behind_first(struct flight *f)
{
	*at(f, 0) = (struct slot){ .state = CONFIRMED };
	f->base = f->next = f->sends = 1;
}

bool flight_done(const struct flight *f)
{
	return f->base == f->count;
}

uint32_t flight_limit(const struct flight *f)
{
	return MIN(MIN(f->count, f->limit), f->base + f->len);
}

static void sent(struct flight *f, uint32_t i, int64_t now)
{
	struct slot *s = at(f, i);

	f->outstanding++;
	s->sent = now;
	s->order = ++f->sends;
	s->state = WAITING;
	if (!f->once)
		f->expiry = MIN(f->expiry, now + interval(s));
}

/* flight_pick chooses a packet to send now, lost ones first, and takes it as sent. */
bool flight_pick(struct flight *f, int64_t now, uint32_t *index, bool *again)
{
	uint32_t i = f->next;

	if (f->outstanding >= f->window)
		return false;
	*again = f->lost > 0;
	if (*again) {
		for (i = f->base; at(f, i)->state != LOST; i++)
			;
		f->lost--;
	} else {
		if (i >= flight_limit(f))
			return false;
		f->next++;
		*at(f, i) = (struct slot){ 0 };
	}
	sent(f, i, now);
	*index = i;
	return true;
}

static void grow(struct flight *f)
{
	if (f->window >= MAX_WINDOW)
		return;
	if (f->window < f->threshold) {
		f->window++;
	} else if (++f->credit >= f->window) {
		f->credit = 0;
		f->window++;
	}
}

/* flight_confirm says that packet i arrived, and returns whether that is news. */
bool flight_confirm(struct flight *f, uint32_t i)
{
	struct slot *s;

	if (i < f->base || i >= f->next)
		return false;
	s = at(f, i);
	if (s->state == CONFIRMED)
		return false;
	if (s->state == LOST)
		f->lost--;
	else
		f->outstanding--;
	s->state = CONFIRMED;
	if (s->tries == 0) /* else nobody knows which transmission arrived (Karn and Partridge, SIGCOMM 1987) */
		f->newest = MAX(f->newest, s->order);
	grow(f);
	while (f->base < f->next && at(f, f->base)->state == CONFIRMED)
		f->base++;
	return true;
}

void flight_confirm_all(struct flight *f)
{
	f->base = f->next = f->count;
	f->outstanding = f->lost = 0;
	f->expiry = NEVER;
}

/* flight_doubt takes the last packet's confirmation back, for when all packets are confirmed and yet no answer came. */
void flight_doubt(struct flight *f, int64_t now)
{
	f->base = f->count - 1;
	sent(f, f->base, now);
}

static void lose(struct flight *f, struct slot *s)
{
	s->state = LOST;
	s->tries = (uint8_t)MIN(s->tries + 1, 8);
	f->outstanding--;
	f->lost++;
	if (s->order > f->recovery) { /* once per window, not once per packet */
		f->recovery = f->sends;
		f->window = MAX(f->window / 2, MIN_WINDOW);
		f->threshold = f->window;
	}
}

/* flight_expire finds the packets that are lost by now: those that waited for too long, and those that many overtook. */
void flight_expire(struct flight *f, int64_t now)
{
	if (f->once || (now < f->expiry && f->newest - f->scanned < REORDER_LIMIT))
		return;
	f->scanned = f->newest;
	f->expiry = NEVER;
	for (uint32_t i = f->base; i < f->next; i++) {
		struct slot *s = at(f, i);
		int64_t due = s->sent + interval(s);

		if (s->state != WAITING)
			continue;
		if (due > now && s->order + REORDER_LIMIT > f->newest)
			f->expiry = MIN(f->expiry, due);
		else
			lose(f, s);
	}
}
