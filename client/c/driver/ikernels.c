// SPDX-License-Identifier: Apache-2.0
/*
 * For the tests, uses an ikernel for a socket from its creation to its end: ikernels SOCKET. test/ikernels compares what the programs of
 * all languages print.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lambdanic.h"

static struct lambdanic_ikernels *all;
static int server, client;

static void must(const char *what, int result)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %s\n", what, lambdanic_ikernels_error(all, result));
	exit(EXIT_FAILURE);
}

static void fails(int result)
{
	printf("%s\n", lambdanic_ikernels_error(all, result));
}

static void open_sockets(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(own);

	server = socket(AF_INET, SOCK_DGRAM, 0);
	client = socket(AF_INET, SOCK_DGRAM, 0);
	must("open sockets", bind(server, (const void *)&own, sizeof(own)));
	must("open sockets", getsockname(server, (void *)&own, &len));
	must("open sockets", connect(client, (const void *)&own, sizeof(own)));
}

static void send_number(int32_t value)
{
	uint32_t number = htonl((uint32_t)value);

	must("send", send(client, &number, sizeof(number), 0) != sizeof(number));
}

static void receive(void)
{
	uint32_t number;

	must("receive", recv(server, &number, sizeof(number), 0) != sizeof(number));
	printf("got %d\n", (int32_t)ntohl(number));
}

static void print(const struct lambdanic_registers *r)
{
	for (size_t i = 0; i < r->n; i++)
		printf("%s=%" PRId64 "%c", r->all[i].name, r->all[i].value, i + 1 < r->n ? ' ' : '\n');
}

static void use(struct lambdanic_ikernel *k)
{
	struct lambdanic_registers expect = { 1, { { "count", 3 } } }, before;
	const struct lambdanic_registers write = { 2, { { "sum", -7 }, { "count", 0 } } };
	int64_t sum;

	must("write", lambdanic_ikernel_write(k, "limit", 100));
	must("attach", lambdanic_ikernel_attach(k, server));
	send_number(-50);
	send_number(150);
	receive();
	must("read", lambdanic_ikernel_transact(k, NULL, NULL, &before));
	print(&before);
	fails(lambdanic_ikernel_transact(k, &expect, &write, NULL));
	expect.all[0].value = 2;
	must("transact", lambdanic_ikernel_transact(k, &expect, &write, &before));
	print(&before);
	must("read", lambdanic_ikernel_read(k, "sum", &sum));
	printf("sum=%" PRId64 " was %" PRId64 "\n", sum, lambdanic_registers_get(&before, "sum"));
	must("detach", lambdanic_ikernel_detach(k, server));
	send_number(50);
	receive();
	fails(lambdanic_ikernel_detach(k, server));
	fails(lambdanic_ikernel_write(k, "x", 1));
}

static void use_badly(struct lambdanic_ikernel *k)
{
	struct lambdanic_registers many = { .n = LAMBDANIC_MAX_REGISTERS + 1 }, unnamed = { .n = 1 };
	struct lambdanic_ikernels *none;
	int64_t value;
	int bad[] = {
		lambdanic_ikernels_open(NULL, NULL),
		lambdanic_ikernels_open(&none, ""),
		lambdanic_ikernel_create(NULL, "echo", &k),
		lambdanic_ikernel_create(all, NULL, &k),
		lambdanic_ikernel_create(all, "echo", NULL),
		lambdanic_ikernel_create(all, "a name that is longer than a name can be", &k),
		lambdanic_ikernel_create_for(
			all, "echo", "a-namespace-with-a-name-that-is-longer-than-that-of-one-may-be-by-one", &k),
		lambdanic_ikernel_attach(NULL, server),
		lambdanic_ikernel_detach(NULL, server),
		lambdanic_ikernel_destroy(NULL),
		lambdanic_ikernel_read(NULL, "sum", &value),
		lambdanic_ikernel_write(NULL, "sum", 1),
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (bad[i] != LAMBDANIC_BAD_ARGUMENT)
			printf("bad argument %zu: %d\n", i, bad[i]);
	must("make another", lambdanic_ikernel_create(all, "threshold", &k));
	if (lambdanic_ikernel_transact(k, &many, NULL, NULL) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_ikernel_transact(k, NULL, &unnamed, NULL) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_ikernel_attach(k, -1) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_ikernel_attach(k, 999) != LAMBDANIC_SYSTEM ||
	    lambdanic_ikernel_read(k, "x", &value) != LAMBDANIC_NO_REGISTER)
		puts("bad arguments are accepted");
}

int main(int argc, char **argv)
{
	struct lambdanic_ikernel *k, *other;

	must("usage: ikernels SOCKET", argc != 2);
	must("open", lambdanic_ikernels_open(&all, argv[1]));
	open_sockets();
	must("create", lambdanic_ikernel_create(all, "threshold", &k));
	must("create", lambdanic_ikernel_create(all, "echo", &other));
	use(k);
	fails(lambdanic_ikernel_create(all, "nope", &other));
	fails(lambdanic_ikernel_create_for(all, "echo", "nowhere", &other));
	fails(lambdanic_ikernel_create_for(all, "", "echo", &other));
	must("create for a namespace", lambdanic_ikernel_create_for(all, "echo", "tenant", &other));
	must("destroy", lambdanic_ikernel_destroy(k));
	use_badly(NULL);
	lambdanic_ikernels_close(all); /* frees the others */
	if (lambdanic_ikernels_open(&all, "/nonexistent") == LAMBDANIC_NO_DAEMON)
		puts("no daemon");
	return EXIT_SUCCESS;
}
