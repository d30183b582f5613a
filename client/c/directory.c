// SPDX-License-Identifier: Apache-2.0
/* Calls by functions' names: a gateway says where functions are, and is asked again when they have moved. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "connection.h"

/* The gateway's answer about a function. */
struct known {
	struct known *next;
	bool stale;
	struct lambdanic_function function;
	char name[];
};

struct place {
	struct place *next;
	struct lambdanic *connection;
	char address[sizeof(((struct lambdanic_function *)0)->address)];
};

struct lambdanic_directory {
	char *gateway, *credentials, *name_space, *key;
	struct lambdanic_options options;
	struct gateway at;
	struct known *known;
	struct place *places;
};

static bool copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

/* key_is_right says whether there is no key, or its text can be read. */
static bool key_is_right(const char *key)
{
	struct tagger t;
	bool right = !key || tagger_read(&t, key, false);

	explicit_bzero(&t, sizeof(t));
	return right;
}

int lambdanic_directory_open(struct lambdanic_directory **directory, const char *gateway, const char *credentials,
			     const char *name_space, const struct lambdanic_options *options)
{
	const char *key = options ? options->key : NULL;
	struct lambdanic_directory *d;

	if (!directory)
		return LAMBDANIC_BAD_ARGUMENT;
	*directory = NULL;
	if (!gateway)
		return LAMBDANIC_BAD_ARGUMENT;
	if (!key_is_right(key))
		return LAMBDANIC_BAD_KEY;
	d = calloc(1, sizeof(*d));
	*directory = d;
	if (!d)
		return LAMBDANIC_SYSTEM;
	if (options)
		d->options = *options;
	if (!d->options.timeout_ms)
		d->options.timeout_ms = DEFAULT_TIMEOUT;
	if (copy(&d->gateway, gateway) && copy(&d->credentials, credentials) && copy(&d->name_space, name_space) &&
	    copy(&d->key, key)) {
		d->options.key = d->key;
		return LAMBDANIC_OK;
	}
	lambdanic_directory_close(d);
	*directory = NULL;
	errno = ENOMEM;
	return LAMBDANIC_SYSTEM;
}

void lambdanic_directory_close(struct lambdanic_directory *d)
{
	if (!d)
		return;
	while (d->known) {
		struct known *next = d->known->next;

		free(d->known);
		d->known = next;
	}
	while (d->places) {
		struct place *next = d->places->next;

		lambdanic_close(d->places->connection);
		free(d->places);
		d->places = next;
	}
	free(d->gateway);
	free(d->credentials);
	free(d->name_space);
	if (d->key)
		explicit_bzero(d->key, strlen(d->key));
	free(d->key);
	free(d);
}

/*
 * find gets a function from memory, or from the gateway if that has not been asked yet or its answer is stale. It gives up after the
 * time-out, and at the deadline.
 */
static int find(struct lambdanic_directory *d, const char *name, int64_t deadline, struct known **found)
{
	const int64_t patience = now_ns() + d->options.timeout_ms * MS;
	struct known *k = d->known;
	int err;

	while (k && strcmp(k->name, name))
		k = k->next;
	if (!k) {
		k = calloc(1, sizeof(*k) + strlen(name) + 1);
		if (!k)
			return LAMBDANIC_SYSTEM;
		strcpy(k->name, name);
		k->stale = true;
		k->next = d->known;
		d->known = k;
	}
	*found = k;
	if (!k->stale)
		return LAMBDANIC_OK;
	err = lookup(&d->at, d->gateway, d->credentials, d->name_space, name, MIN(patience, deadline), &k->function);
	k->stale = err != LAMBDANIC_OK;
	return err;
}

static int connection_to(struct lambdanic_directory *d, const char *address, struct lambdanic **connection)
{
	struct place *p = d->places;
	int err;

	while (p && strcmp(p->address, address))
		p = p->next;
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return LAMBDANIC_SYSTEM;
		strcpy(p->address, address);
		err = lambdanic_open(&p->connection, address, &d->options);
		if (err) {
			free(p);
			return err;
		}
		p->next = d->places;
		d->places = p;
	}
	*connection = p->connection;
	return LAMBDANIC_OK;
}

/* A call by name, which may move from one address to another. */
struct journey {
	struct lambdanic_directory *directory;
	struct known *known;
	struct lambdanic_request request;
	int64_t deadline; /* NEVER: after so long without progress */
	int64_t moved; /* when the last packet got through at the address before; 0: this is the first */
	uint32_t resends; /* at earlier addresses */
};

/* look_up continues the question where the function is. Returns whether it has moved. */
static bool look_up(struct journey *j, struct inquiry *q)
{
	struct lambdanic_function *was = &j->known->function, f;
	bool moved;
	int result;

	if (!inquiry_go_on(q, &result, &f))
		return false;
	inquiry_end(q);
	if (result)
		return false;
	moved = f.workload != was->workload || strcmp(f.address, was->address);
	*was = f;
	return moved;
}

/* wait_for_either waits for a packet or the gateway, until a call of the connection has to be polled at the latest. */
static void wait_for_either(const struct lambdanic *c, const struct inquiry *q, int64_t now)
{
	const int64_t wait = c->ready.head ? 0 : MIN(MAX(c->wake - now, 0), FIRST_INTERVAL);
	const struct timespec ts = { .tv_nsec = wait };

	ppoll((struct pollfd[]){ { .fd = c->fd, .events = POLLIN }, inquiry_waits(q) }, 2, &ts, NULL);
}

/*
 * call_at makes the call at one address, and asks meanwhile whether it is the right one: packets of the call never wait for the
 * gateway. The result is MOVED if the function has moved.
 */
static int call_at(struct journey *j, struct lambdanic *c, struct lambdanic_reply *reply)
{
	struct lambdanic_directory *d = j->directory;
	int64_t now = now_ns(), refused_at = c->network_error_at;
	struct inquiry q = { .fd = -1 };
	struct call *k;
	bool refused;
	int err;

	j->request.workload = j->known->function.workload;
	if (j->deadline != NEVER)
		j->request.deadline_us = (uint64_t)MAX((j->deadline - now) / 1000, 1);
	err = start_call(c, &j->request, reply, now);
	if (err) {
		reply->result = err;
		reply->os_error = err == LAMBDANIC_SYSTEM ? errno : 0;
		return err;
	}
	k = (struct call *)c->calls.prev;
	if (j->moved)
		k->x.moved = j->moved;
	c->waited++;
	while (c->waited) {
		if (!step(c, &now, q.fd < 0 ? NEVER : now))
			abandon_calls(c, errno);
		if (!c->waited)
			break;
		refused = c->network_error_at != refused_at; /* a question under way is about this, too */
		refused_at = c->network_error_at;
		if (q.fd >= 0) {
			k->moved = look_up(j, &q);
			if (k->moved)
				make_ready(c, k);
			else if (q.fd >= 0)
				wait_for_either(c, &q, now);
			now = now_ns();
		} else if (exchange_asks(&k->x, refused)) {
			inquiry_begin(&q, &d->at, now + d->options.timeout_ms * MS, d->credentials, d->name_space,
				      j->known->name);
		}
		j->moved = k->x.moved;
	}
	inquiry_end(&q);
	j->resends += reply->resends;
	reply->resends = j->resends;
	return reply->result;
}

int lambdanic_call_by_name(struct lambdanic_directory *d, const char *name, const struct lambdanic_request *request,
			   struct lambdanic_reply *reply)
{
	struct journey j = { .directory = d, .deadline = NEVER };
	struct lambdanic *connection;
	bool again = false, late;
	int result;

	if (!reply)
		return LAMBDANIC_BAD_ARGUMENT;
	*reply = (struct lambdanic_reply){ .result = LAMBDANIC_BAD_ARGUMENT, .user = request ? request->user : NULL };
	if (!d || !name || !*name || !request || (request->len && !request->body))
		return LAMBDANIC_BAD_ARGUMENT; /* before the gateway is asked */
	j.request = *request;
	if (request->deadline_us)
		j.deadline = now_ns() + deadline_ns(request->deadline_us);
	for (;;) {
		*reply = (struct lambdanic_reply){ .user = j.request.user, .resends = j.resends };
		result = find(d, name, j.deadline, &j.known);
		if (!result)
			result = connection_to(d, j.known->function.address, &connection);
		if (result) {
			reply->result = result;
			reply->os_error = result == LAMBDANIC_SYSTEM ? errno : 0;
			return result;
		}
		result = call_at(&j, connection, reply);
		if (result == MOVED)
			continue;
		late = result == LAMBDANIC_DEADLINE || (result > 0 && reply->os_error == ETIMEDOUT);
		j.known->stale = late || result == LN_CODE_UNKNOWN_WORKLOAD;
		if (late || result != LN_CODE_UNKNOWN_WORKLOAD || again)
			return result;
		again = true;
	}
}
