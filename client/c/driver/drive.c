// SPDX-License-Identifier: Apache-2.0
/*
 * Makes calls for the tests: drive ADDRESS (call|many|submit|beside) [OPTION=VALUE]... Each line of standard input is a request:
 * WORKLOAD METHOD ROOM DEADLINE_US BODY, the body in hexadecimal behind a dot. Each reply is one line, in order of the
 * requests: RESULT OS_ERROR NEED STATUS REVISION RESENDS BODY. The last line has the counters.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lambdanic.h"

#define MAX_CALLS 65536

static struct lambdanic_request requests[MAX_CALLS];
static struct lambdanic_reply replies[MAX_CALLS];
static size_t calls;
static bool at_most_once;

static void fail(const char *what, int result)
{
	fprintf(stderr, "%s: %s (%d, errno %d)\n", what, lambdanic_strerror(result), result, errno);
	exit(EXIT_FAILURE);
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void read_requests(void)
{
	size_t room = 0;
	char *line = NULL, *dot;

	while (getline(&line, &room, stdin) > 0) {
		struct lambdanic_request *r = &requests[calls];
		uint8_t *body;

		dot = strchr(line, '.');
		if (!dot || calls == MAX_CALLS ||
		    sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu64, &r->workload, &r->method,
			   &r->reply_room, &r->deadline_us) != 4)
			fail("request", 0);
		r->len = strcspn(++dot, "\n") / 2;
		body = malloc(r->len); /* exact size, so that a read beyond its end is found */
		for (size_t i = 0; i < r->len; i++)
			body[i] = (uint8_t)(digit(dot[2 * i]) << 4 | digit(dot[2 * i + 1]));
		r->body = body;
		r->once = at_most_once;
		r->user = &replies[calls++];
	}
	free(line);
}

static void submit_all(struct lambdanic *c)
{
	struct lambdanic_reply reply;
	int n;

	for (size_t i = 0; i < calls; i++) {
		int err = lambdanic_submit(c, &requests[i]);

		if (err)
			replies[i].result = err;
	}
	while ((n = lambdanic_complete(c, &reply, 1000000)) > 0 || (!n && lambdanic_pending(c)))
		if (n)
			*(struct lambdanic_reply *)reply.user = reply;
	if (n < 0)
		fail("complete", n);
}

/* One after the other; beside the first, which is submitted and left alone, where so asked. */
static void call_each(struct lambdanic *c, bool beside)
{
	if (beside && calls)
		replies[0].result = lambdanic_submit(c, &requests[0]);
	for (size_t i = beside; i < calls; i++)
		lambdanic_call(c, &requests[i], &replies[i]);
}

static void set_option(struct lambdanic_options *o, const char *text)
{
	const char *value = strchr(text, '=');
	uint32_t v = value ? (uint32_t)strtoul(value + 1, NULL, 10) : 0;

	if (!strncmp(text, "timeout=", 8))
		o->timeout_ms = v;
	else if (!strncmp(text, "room=", 5))
		o->reply_room = v;
	else if (!strncmp(text, "max=", 4))
		o->max_reply = v;
	else if (!strncmp(text, "once=", 5))
		o->without_resend = v;
	else if (!strncmp(text, "at-most-once=", 13))
		at_most_once = v;
	else if (!strncmp(text, "spin=", 5))
		o->spin = v;
	else
		fail(text, 0);
}

static void print(struct lambdanic_reply *r)
{
	static const char digits[] = "0123456789abcdef";

	printf("%d %d %" PRIu32 " %u %" PRIu32 " %" PRIu32 " .", r->result, r->os_error, r->need, r->status,
	       r->revision, r->resends);
	for (size_t i = 0; i < r->len; i++) {
		putchar(digits[r->body[i] >> 4]);
		putchar(digits[r->body[i] & 15]);
	}
	putchar('\n');
	lambdanic_reply_free(r);
}

int main(int argc, char **argv)
{
	struct lambdanic_options options = { 0 };
	struct lambdanic_stats s;
	struct lambdanic *c;
	int err;

	if (argc < 3)
		return EXIT_FAILURE;
	for (int i = 3; i < argc; i++)
		set_option(&options, argv[i]);
	err = lambdanic_open(&c, argv[1], &options);
	if (err)
		fail(argv[1], err);
	read_requests();
	if (!strcmp(argv[2], "many"))
		lambdanic_call_many(c, requests, replies, calls);
	else if (!strcmp(argv[2], "submit"))
		submit_all(c);
	else
		call_each(c, !strcmp(argv[2], "beside"));
	for (size_t i = 0; i < calls; i++) {
		print(&replies[i]);
		free((void *)(uintptr_t)requests[i].body);
	}
	lambdanic_get_stats(c, &s);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
	       s.calls, s.restarts, s.sent, s.resent, s.received, s.duplicates, s.stray, s.malformed);
	lambdanic_close(c);
	return EXIT_SUCCESS;
}
