// SPDX-License-Identifier: Apache-2.0
/* What callers see: connections, and calls on them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "connection.h"

#define MANY 256 /* calls of lambdanic_call_many() that are in flight at once */

bool step(struct lambdanic *c, int64_t *now, int64_t until)
{
	size_t waited = c->waited;

	poll_calls(c, *now);
	/* A caller that waits for its own calls gets finished submitted ones later. */
	if (c->calls.next == &c->calls || (waited ? c->waited < waited : c->done.head != NULL))
		return true;
	if (c->ready.head)
		until = *now;
	return receive(c, now, MIN(until, c->wake));
}

/* set_options fills in defaults, and reads the key. Returns false if that is none. */
static bool set_options(struct lambdanic *c, const struct lambdanic_options *options)
{
	if (options)
		c->options = *options;
	if (!c->options.timeout_ms)
		c->options.timeout_ms = DEFAULT_TIMEOUT;
	if (!c->options.reply_room)
		c->options.reply_room = 512;
	if (!c->options.max_reply)
		c->options.max_reply = LN_RPC_MAX_MESSAGE;
	if (!c->options.key)
		return true;
	c->out.tagger = &c->tagger;
	c->options.key = NULL; /* the caller may free it */
	return tagger_read(&c->tagger, options->key, options->tag_header_only);
}

static void free_connection(struct lambdanic *c)
{
	explicit_bzero(&c->tagger, sizeof(c->tagger));
	free(c);
}

int lambdanic_open(struct lambdanic **connection, const char *address, const struct lambdanic_options *options)
{
	struct lambdanic *c;
	int err;

	if (!connection)
		return LAMBDANIC_BAD_ARGUMENT;
	*connection = NULL;
	if (!address)
		return LAMBDANIC_BAD_ARGUMENT;
	c = calloc(1, sizeof(*c));
	if (!c)
		return LAMBDANIC_SYSTEM;
	err = set_options(c, options) ? connect_to(address, LN_RPC_PORT, SOCK_DGRAM, NEVER, &c->fd, &c->single)
				      : LAMBDANIC_BAD_KEY;
	if (err) {
		free_connection(c);
		return err;
	}
	c->calls.next = c->calls.prev = &c->calls;
	c->ready.tail = &c->ready.head;
	c->done.tail = &c->done.head;
	c->wake = NEVER;
	c->network_error_at = -1;
	set_up_socket(c);
	/* Others cannot guess where IDs start, and they do not collide with an earlier socket's. */
	if (getrandom(&c->id, sizeof(c->id), 0) != sizeof(c->id) || !tagger_identify(&c->tagger)) {
		lambdanic_close(c);
		return LAMBDANIC_SYSTEM;
	}
	*connection = c;
	return LAMBDANIC_OK;
}

static void free_list(struct call *k, bool reply)
{
	while (k) {
		struct call *next = k->queued;

		if (reply)
			lambdanic_reply_free(&k->reply);
		exchange_free(&k->x);
		free(k);
		k = next;
	}
}

void lambdanic_close(struct lambdanic *c)
{
	if (!c)
		return;
	while (c->calls.next != &c->calls) {
		struct call *k = (struct call *)c->calls.next;

		c->calls.next = k->all.next;
		exchange_free(&k->x);
		free(k);
	}
	free_list(c->done.head, true);
	free_list(c->spare, false);
	close(c->fd);
	free_connection(c);
}

int lambdanic_submit(struct lambdanic *c, const struct lambdanic_request *request)
{
	int err;

	if (!c || !request)
		return LAMBDANIC_BAD_ARGUMENT;
	err = start_call(c, request, NULL, now_ns());
	if (!err)
		c->pending++;
	return err;
}

int lambdanic_complete(struct lambdanic *c, struct lambdanic_reply *reply, uint64_t timeout_us)
{
	int64_t now = now_ns(), until = now + (int64_t)MIN(timeout_us, UINT64_C(1) << 50) * 1000;
	struct call *k;

	if (!c || !reply)
		return LAMBDANIC_BAD_ARGUMENT;
	while (!(k = dequeue(&c->done))) {
		bool over = now >= until;

		if (!c->pending || !step(c, &now, until))
			return c->pending ? LAMBDANIC_SYSTEM : 0;
		if (over && !c->ready.head && !c->done.head)
			return 0;
	}
	*reply = k->reply;
	free_call(c, k);
	c->pending--;
	return 1;
}

int lambdanic_call_many(struct lambdanic *c, const struct lambdanic_request *requests, struct lambdanic_reply *replies,
			size_t n)
{
	int64_t now = now_ns();
	size_t started = 0;

	if (!c || (n && (!requests || !replies)))
		return LAMBDANIC_BAD_ARGUMENT;
	while (started < n || c->waited) {
		while (started < n && c->waited < MANY) {
			struct lambdanic_reply *r = &replies[started];
			int err = start_call(c, &requests[started], r, now);

			if (err)
				*r = (struct lambdanic_reply){
					.result = err,
					.os_error = err == LAMBDANIC_SYSTEM ? errno : 0,
					.user = requests[started].user,
				};
			else
				c->waited++;
			started++;
		}
		if (c->waited && !step(c, &now, NEVER))
			abandon_calls(c, errno);
	}
	for (size_t i = 0; i < n; i++)
		if (replies[i].result)
			return replies[i].result;
	return LAMBDANIC_OK;
}

int lambdanic_call(struct lambdanic *c, const struct lambdanic_request *request, struct lambdanic_reply *reply)
{
	return lambdanic_call_many(c, request, reply, 1);
}

void lambdanic_reply_free(struct lambdanic_reply *reply)
{
	if (!reply)
		return;
	free(reply->body);
	reply->body = NULL;
	reply->len = 0;
}

size_t lambdanic_pending(const struct lambdanic *c)
{
	return c ? c->pending : 0;
}

int lambdanic_fd(const struct lambdanic *c)
{
	return c ? c->fd : LAMBDANIC_BAD_ARGUMENT;
}

uint64_t lambdanic_next_us(const struct lambdanic *c)
{
	int64_t now = now_ns();

	if (!c)
		return UINT64_MAX;
	if (c->ready.head || c->done.head || c->wake <= now)
		return 0;
	return c->wake == NEVER ? UINT64_MAX : (uint64_t)(c->wake - now) / 1000;
}

void lambdanic_get_stats(const struct lambdanic *c, struct lambdanic_stats *stats)
{
	if (stats)
		*stats = c ? c->stats : (struct lambdanic_stats){ 0 };
}
