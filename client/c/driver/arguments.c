// SPDX-License-Identifier: Apache-2.0
/*
 * Gives bad arguments to all functions of the library, for the tests: arguments ADDRESS. A call is under way meanwhile; its
 * result is the last line. Each line is: WHAT RESULT.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lambdanic.h"

static void say(const char *what, int64_t result)
{
	printf("%s %" PRId64 "\n", what, result);
}

static void open_badly(const char *address)
{
	static const char *const bad[] = { "",
					   ":1",
					   "[::1",
					   "[::1]x",
					   "host:x",
					   "127.0.0.1:0",
					   "127.0.0.1:-1",
					   "127.0.0.1:65536",
					   "127.0.0.1:69905" };
	struct lambdanic *c;

	say("argument", lambdanic_open(NULL, address, NULL));
	say("argument", lambdanic_open(&c, NULL, NULL));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		say("address", lambdanic_open(&c, bad[i], NULL));
}

static void call_badly(struct lambdanic *c)
{
	const struct lambdanic_request good = { .workload = 1 }, bad[2] = { { .workload = 1, .len = 1 }, good };
	struct lambdanic_reply reply, replies[2];

	say("argument", lambdanic_call(NULL, &good, &reply));
	say("argument", lambdanic_call(c, NULL, &reply));
	say("argument", lambdanic_call(c, &good, NULL));
	say("argument", lambdanic_call(c, bad, &reply));
	say("argument", lambdanic_submit(NULL, &good));
	say("argument", lambdanic_submit(c, NULL));
	say("argument", lambdanic_submit(c, bad));
	say("argument", lambdanic_complete(NULL, &reply, 0));
	say("argument", lambdanic_complete(c, NULL, 0));
	say("argument", lambdanic_call_many(c, NULL, replies, 2));
	say("argument", lambdanic_call_many(c, &good, NULL, 1));
	say("argument", lambdanic_call_many(c, bad, replies, 2));
	say("argument", replies[0].result);
	say("ok", replies[1].result);
	lambdanic_reply_free(&replies[1]);
	say("ok", lambdanic_call_many(c, NULL, NULL, 0));
}

static void ask_badly(struct lambdanic *c)
{
	struct lambdanic_stats s;

	lambdanic_close(NULL);
	lambdanic_reply_free(NULL);
	say("ok", (int64_t)lambdanic_pending(NULL));
	say("argument", lambdanic_fd(NULL));
	say("ok", lambdanic_next_us(NULL) != UINT64_MAX);
	lambdanic_get_stats(c, NULL);
	lambdanic_get_stats(NULL, &s);
	say("ok", (int64_t)s.calls);
	say("ok", lambdanic_reply_error(NULL) != lambdanic_strerror(LAMBDANIC_BAD_ARGUMENT));
}

static void name_badly(void)
{
	const struct lambdanic_request good = { .workload = 1 }, bad = { .len = 1 };
	static const char gateway[] = "127.0.0.1:1"; /* nobody has to be there: it is not asked */
	struct lambdanic_directory *d;
	struct lambdanic_function f;
	struct lambdanic_reply reply;

	say("argument", lambdanic_lookup(NULL, NULL, NULL, "echo", 0, &f));
	say("argument", lambdanic_lookup(gateway, NULL, NULL, NULL, 0, &f));
	say("argument", lambdanic_lookup(gateway, NULL, NULL, "", 0, &f));
	say("argument", lambdanic_lookup(gateway, NULL, NULL, "echo", 0, NULL));
	say("address", lambdanic_lookup("unix:", NULL, NULL, "echo", 0, &f));
	say("address", lambdanic_lookup("127.0.0.1:65536", NULL, NULL, "echo", 0, &f));
	say("argument", lambdanic_directory_open(NULL, gateway, NULL, NULL, NULL));
	say("argument", lambdanic_directory_open(&d, NULL, NULL, NULL, NULL));
	say("ok", lambdanic_directory_open(&d, gateway, NULL, NULL, NULL));
	say("argument", lambdanic_call_by_name(NULL, "echo", &good, &reply));
	say("argument", lambdanic_call_by_name(d, NULL, &good, &reply));
	say("argument", lambdanic_call_by_name(d, "", &good, &reply));
	say("argument", lambdanic_call_by_name(d, "echo", NULL, &reply));
	say("argument", lambdanic_call_by_name(d, "echo", &good, NULL));
	say("argument", lambdanic_call_by_name(d, "echo", &bad, &reply));
	lambdanic_directory_close(d);
	lambdanic_directory_close(NULL);
}

int main(int argc, char **argv)
{
	const struct lambdanic_request request = { .workload = 1, .body = "hello", .len = 5 };
	struct lambdanic_reply reply;
	struct lambdanic *c;

	if (argc != 2 || lambdanic_open(&c, argv[1], NULL) || lambdanic_submit(c, &request))
		return EXIT_FAILURE;
	open_badly(argv[1]);
	call_badly(c);
	ask_badly(c);
	name_badly();
	while (!lambdanic_complete(c, &reply, 1000000))
		;
	say("ok", reply.result);
	lambdanic_reply_free(&reply);
	lambdanic_close(c);
	return EXIT_SUCCESS;
}
