// SPDX-License-Identifier: Apache-2.0
/* How calls begin, end, and get their turn. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "connection.h"

#define MAX_ATTEMPTS 8 /* how often a call starts over because its revision went away while it ran */

int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int64_t deadline_ns(uint64_t us)
{
	return (int64_t)MIN(us, UINT64_C(1) << 50) * 1000;
}

void enqueue(struct queue *q, struct call *k)
{
	k->queued = NULL;
	*q->tail = k;
	q->tail = &k->queued;
}

struct call *dequeue(struct queue *q)
{
	struct call *k = q->head;

	if (!k)
		return NULL;
	q->head = k->queued;
	if (!q->head)
		q->tail = &q->head;
	return k;
}

void make_ready(struct lambdanic *c, struct call *k)
{
	if (k->ready)
		return;
	k->ready = true;
	enqueue(&c->ready, k);
}

/* Calls by request ID */

static struct call **bucket(struct lambdanic *c, uint64_t id)
{
	return &c->buckets[id % BUCKETS];
}

struct call *find_call(struct lambdanic *c, uint64_t id)
{
	struct call *k = *bucket(c, id);

	while (k && k->x.head.request != id)
		k = k->in_bucket;
	return k;
}

static void forget(struct lambdanic *c, struct call *k)
{
	struct call **p = bucket(c, k->x.head.request);

	while (*p && *p != k)
		p = &(*p)->in_bucket;
	if (*p)
		*p = k->in_bucket;
}

static void remember(struct lambdanic *c, struct call *k)
{
	struct call **p = bucket(c, k->x.head.request);

	k->in_bucket = *p;
	*p = k;
}

/* How much room a reply gets */

static struct room *room_of(struct lambdanic *c, const struct header *head)
{
	return &c->rooms[(head->workload * UINT32_C(2654435761) + head->method) % ROOMS];
}

static uint32_t room_for(struct lambdanic *c, const struct header *head, uint32_t asked)
{
	const struct room *r = room_of(c, head);
	uint32_t room = c->options.reply_room;

	if (head->flags & LN_FLAG_ONCE)
		room = c->single; /* a reply that does not fit would need another run */
	else if (asked)
		room = asked;
	else if (r->workload == head->workload && r->method == head->method)
		room = MAX(room, r->bytes);
	return MIN(room, c->single);
}

static void learn_room(struct lambdanic *c, const struct call *k)
{
	const struct header *head = &k->x.head;
	uint32_t bytes = MIN(k->x.first.message_len, c->single);
	struct room *r = room_of(c, head);

	if (k->asked_room || bytes <= c->options.reply_room)
		return;
	if (r->workload != head->workload || r->method != head->method || r->bytes < bytes)
		*r = (struct room){ head->workload, head->method, bytes };
}

/* The life of a call */

static bool begin_attempt(struct lambdanic *c, struct call *k, struct header head, int64_t now)
{
	head.request = ++c->id;
	c->stats.calls++;
	if (!exchange_start(&k->x, now, k->idle ? NEVER : k->deadline, &head, k->body, k->room,
			    c->options.without_resend))
		return false;
	remember(c, k);
	make_ready(c, k);
	return true;
}

static struct call *new_call(struct lambdanic *c)
{
	struct call *k = c->spare;

	if (k)
		c->spare = k->queued;
	else
		k = calloc(1, sizeof(*k));
	return k;
}

void free_call(struct lambdanic *c, struct call *k)
{
	k->queued = c->spare;
	c->spare = k;
}

int start_call(struct lambdanic *c, const struct lambdanic_request *r, struct lambdanic_reply *into, int64_t now)
{
	struct header head = { .type = LN_TYPE_REQUEST, .workload = r->workload, .method = r->method, .count = 1 };
	int64_t timeout = c->options.timeout_ms * MS;
	struct call *k;

	if (r->len && !r->body)
		return LAMBDANIC_BAD_ARGUMENT;
	if (r->len > LN_RPC_MAX_MESSAGE)
		return LAMBDANIC_REQUEST_TOO_LARGE;
	k = new_call(c);
	if (!k)
		return LAMBDANIC_SYSTEM;
	if (r->deadline_us)
		timeout = deadline_ns(r->deadline_us);
	if (r->once)
		head.flags = LN_FLAG_ONCE;
	head.message_len = (uint32_t)r->len;
	head.deadline_us = (uint32_t)MIN(timeout / 1000, UINT32_MAX);
	if (r->len > c->single)
		head.count = (head.message_len + LN_RPC_FRAGMENT - 1) / LN_RPC_FRAGMENT;
	k->body = r->body;
	k->user = r->user;
	k->into = into;
	k->asked_room = r->reply_room;
	k->room = room_for(c, &head, r->reply_room);
	k->idle = !r->deadline_us;
	k->started = now;
	k->deadline = now + timeout;
	k->attempt = 0;
	k->resends = 0;
	k->send_error = 0;
	k->moved = false;
	k->wake = NEVER;
	k->x.max = c->options.max_reply;
	if (!begin_attempt(c, k, head, now)) {
		free_call(c, k);
		errno = ENOMEM;
		return LAMBDANIC_SYSTEM;
	}
	k->all.next = &c->calls;
	k->all.prev = c->calls.prev;
	k->all.prev->next = k->all.next->prev = &k->all;
	return LAMBDANIC_OK;
}

/* start_over decides whether a call that ended with this result is tried again, and with how much room. */
static bool start_over(struct lambdanic *c, struct call *k, int result)
{
	if (!k->x.finished || k->attempt >= MAX_ATTEMPTS || (k->x.head.flags & LN_FLAG_ONCE))
		return false;
	if (result == LN_CODE_STALE)
		return true;
	if (result == LN_CODE_TOO_LARGE && k->x.head.count == 1 && k->x.need > k->room && k->x.need <= c->single) {
		k->room = k->x.need;
		return true;
	}
	return false;
}

static void hand_over(struct lambdanic *c, struct call *k, int result, int os_error)
{
	struct lambdanic_reply *r = k->into ? k->into : &k->reply;

	*r = (struct lambdanic_reply){ .result = result, .os_error = os_error, .resends = k->resends, .user = k->user };
	if (result == LN_CODE_TOO_LARGE)
		r->need = k->x.need;
	if (result == LN_CODE_LAMBDA_FAULT)
		r->fault = k->x.fault;
	if (result == LAMBDANIC_OK) {
		learn_room(c, k);
		r->status = k->x.first.code;
		r->revision = k->x.first.revision;
		r->body = k->x.reply;
		r->len = k->x.first.message_len;
		k->x.reply = NULL;
	}
	k->all.prev->next = k->all.next;
	k->all.next->prev = k->all.prev;
	if (c->calls.next == &c->calls)
		c->wake = NEVER; /* no call is left */
	if (!k->into) {
		enqueue(&c->done, k);
		return;
	}
	c->waited--;
	free_call(c, k);
}

/* finish ends an attempt, and with it the call unless it starts over. k is in no queue. */
static void finish(struct lambdanic *c, struct call *k, int result, int os_error, int64_t now)
{
	if (batch_full(&c->out))
		flush(c);
	c->out.owner = NULL; /* the call does not depend on whether this packet can be sent */
	exchange_release(&k->x, &c->out);
	forget(c, k);
	c->stats.resent += k->x.resent;
	c->stats.duplicates += k->x.duplicates;
	c->stats.malformed += k->x.malformed;
	k->resends += k->x.resent;
	if (start_over(c, k, result)) {
		k->attempt++;
		c->stats.restarts++;
		if (begin_attempt(c, k, k->x.head, now))
			return;
		result = LAMBDANIC_SYSTEM;
		os_error = ENOMEM;
	}
	if (result == LAMBDANIC_DEADLINE && c->network_error_at >= k->started)
		os_error = c->network_error;
	hand_over(c, k, result, os_error);
}

/* poll_call lets a call send what is due, and ends it if its time is over. */
static void poll_call(struct lambdanic *c, struct call *k, int64_t now)
{
	k->ready = false;
	if (k->x.finished) {
		finish(c, k, k->x.result, k->x.result == LAMBDANIC_SYSTEM ? ENOMEM : 0, now);
		return;
	}
	if (k->moved) {
		finish(c, k, MOVED, 0, now);
		return;
	}
	if (k->send_error) {
		finish(c, k, LAMBDANIC_SYSTEM, k->send_error, now);
		return;
	}
	if (k->idle)
		k->deadline = k->x.moved + c->options.timeout_ms * MS;
	if (now >= k->deadline) {
		if (k->x.told)
			finish(c, k, k->x.told, ETIMEDOUT, now);
		else
			finish(c, k, LAMBDANIC_DEADLINE, 0, now);
		return;
	}
	if (batch_full(&c->out))
		flush(c);
	c->out.owner = k;
	k->wake = MIN(exchange_poll(&k->x, now, &c->out), k->deadline);
	c->wake = MIN(c->wake, k->wake);
}

void poll_calls(struct lambdanic *c, int64_t now)
{
	struct call *k, *last;

	if (now >= c->wake) {
		c->wake = NEVER;
		for (struct list *l = c->calls.next; l != &c->calls; l = l->next) {
			k = (struct call *)l;
			if (k->wake <= now)
				make_ready(c, k);
			else
				c->wake = MIN(c->wake, k->wake);
		}
	}
	last = c->ready.head ? (struct call *)((char *)c->ready.tail - offsetof(struct call, queued)) : NULL;
	while ((k = dequeue(&c->ready))) {
		poll_call(c, k, now);
		if (k == last) /* calls that became ready meanwhile come after a look at what arrived */
			break;
	}
	flush(c);
}

void abandon_calls(struct lambdanic *c, int os_error)
{
	struct list *next;

	while (dequeue(&c->ready))
		;
	for (struct list *l = c->calls.next; l != &c->calls; l = next) {
		struct call *k = (struct call *)l;

		next = l->next;
		k->ready = false;
		if (k->into) {
			forget(c, k);
			hand_over(c, k, LAMBDANIC_SYSTEM, os_error);
		} else {
			make_ready(c, k);
		}
	}
}
