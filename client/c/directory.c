// SPDX-License-Identifier: Apache-2.0
/* Calls by functions' names: a gateway says where they are, and is asked again where they are not there any more. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* What the gateway said of a function. */
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
	char *gateway, *credentials, *name_space;
	struct lambdanic_options options;
	struct known *known;
	struct place *places;
};

static bool copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

int lambdanic_directory_open(struct lambdanic_directory **directory, const char *gateway, const char *credentials,
			     const char *name_space, const struct lambdanic_options *options)
{
	struct lambdanic_directory *d;

	if (!directory)
		return LAMBDANIC_BAD_ARGUMENT;
	*directory = NULL;
	if (!gateway)
		return LAMBDANIC_BAD_ARGUMENT;
	d = calloc(1, sizeof(*d));
	*directory = d;
	if (!d)
		return LAMBDANIC_SYSTEM;
	if (options)
		d->options = *options;
	if (copy(&d->gateway, gateway) && copy(&d->credentials, credentials) && copy(&d->name_space, name_space))
		return LAMBDANIC_OK;
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
	free(d);
}

/* find gets a function from memory, or from the gateway where that has not been asked yet or its answer is stale. */
static int find(struct lambdanic_directory *d, const char *name, struct known **found)
{
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
	err = lambdanic_lookup(d->gateway, d->credentials, d->name_space, name, d->options.timeout_ms, &k->function);
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

int lambdanic_call_by_name(struct lambdanic_directory *d, const char *name, const struct lambdanic_request *request,
			   struct lambdanic_reply *reply)
{
	struct lambdanic_request r;
	struct lambdanic *connection;
	struct known *k;
	int result;

	if (!reply)
		return LAMBDANIC_BAD_ARGUMENT;
	*reply = (struct lambdanic_reply){ .result = LAMBDANIC_BAD_ARGUMENT, .user = request ? request->user : NULL };
	if (!d || !name || !*name || !request || (request->len && !request->body))
		return LAMBDANIC_BAD_ARGUMENT; /* before the gateway is asked */
	r = *request;
	for (bool again = false;; again = true) {
		*reply = (struct lambdanic_reply){ .user = r.user };
		result = find(d, name, &k);
		if (!result)
			result = connection_to(d, k->function.address, &connection);
		if (result) {
			reply->result = result;
			reply->os_error = result == LAMBDANIC_SYSTEM ? errno : 0;
			return result;
		}
		r.workload = k->function.workload;
		result = lambdanic_call(connection, &r, reply);
		k->stale = result == LN_CODE_UNKNOWN_WORKLOAD || result == LAMBDANIC_DEADLINE;
		if (result != LN_CODE_UNKNOWN_WORKLOAD || again)
			return result;
	}
}
