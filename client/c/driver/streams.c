// SPDX-License-Identifier: Apache-2.0
/*
 * For the tests, attaches TCP sockets to an ikernel: streams SOCKET, or streams SOCKET stay, which serves one connection until it is killed. test/ikernels
 * compares what the programs of all languages print.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lambdanic.h"

static struct lambdanic_ikernels *all;
static struct sockaddr_in address; /* at which the listener is */
static int listener, server, client;
static int attached; /* the socket that has the ikernel: the listener or the server */

static void must(const char *what, int result)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %s, errno %d\n", what, lambdanic_ikernels_error(all, result), errno);
	exit(EXIT_FAILURE);
}

static void fails(int result)
{
	printf("%s\n", lambdanic_ikernels_error(all, result));
}

static void listen_for_client(void)
{
	socklen_t len = sizeof(address);

	address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	must("bind", bind(listener, (const void *)&address, len));
	must("bind", getsockname(listener, (void *)&address, &len));
	must("listen", listen(listener, 1));
}

static void await_input(int fd)
{
	struct pollfd readable = { fd, POLLIN, 0 };

	must("wait", poll(&readable, 1, -1) != 1);
}

static void accept_client(void)
{
	await_input(listener);
	server = accept4(listener, NULL, NULL, SOCK_NONBLOCK); /* one that blocks has no ikernel */
	must("accept", server < 0);
}

/* Kernels newer than 6.18 may let no listener have an ikernel: then each connection gets it. */
static void attach_listener(struct lambdanic_ikernel *k)
{
	int err = lambdanic_ikernel_attach(k, listener);

	attached = listener;
	if (err == LAMBDANIC_REFUSED && errno == EOPNOTSUPP)
		attached = -1;
	else
		must("attach the listener", err);
}

static void attach_server(struct lambdanic_ikernel *k)
{
	attached = server;
	must("attach the connection", lambdanic_ikernel_attach(k, server));
}

/* From the client's answer on, the ikernel gets all that it sends. */
static void greet(void)
{
	must("greet", send(server, "x", 1, 0) != 1);
}

static void send_number(int32_t value)
{
	uint32_t number = htonl((uint32_t)value);

	must("send", send(client, &number, sizeof(number), 0) != sizeof(number));
}

/* Waits until the ikernel has got so many, so that they share no segment. */
static void await_count(struct lambdanic_ikernel *k, int64_t want)
{
	int64_t count;

	do
		must("read", lambdanic_ikernel_read(k, "count", &count));
	while (count < want);
}

static void receive(void)
{
	uint32_t number;

	await_input(server);
	must("receive", recv(server, &number, sizeof(number), 0) != sizeof(number));
	printf("got %d\n", (int32_t)ntohl(number));
}

static void print(struct lambdanic_ikernel *k)
{
	struct lambdanic_registers r;

	must("read", lambdanic_ikernel_transact(k, NULL, NULL, &r));
	for (size_t i = 0; i < r.n; i++)
		printf("%s=%" PRId64 "%c", r.all[i].name, r.all[i].value, i + 1 < r.n ? ' ' : '\n');
}

static void use(struct lambdanic_ikernel *k)
{
	greet();
	must("be greeted", recv(client, &(char){ 0 }, 1, 0) != 1);
	send_number(-50);
	await_count(k, 1);
	send_number(150);
	await_count(k, 2);
	receive();
	print(k);
	fails(lambdanic_ikernel_attach(k, attached));
	must("detach", lambdanic_ikernel_detach(k, attached));
	send_number(50);
	receive();
	fails(lambdanic_ikernel_detach(k, server));
}

static struct lambdanic_ikernel *create(void)
{
	struct lambdanic_ikernel *k;

	must("create", lambdanic_ikernel_create(all, "threshold", &k));
	must("write", lambdanic_ikernel_write(k, "limit", 100));
	return k;
}

static void attach_and_use(bool listening)
{
	struct lambdanic_ikernel *k = create();

	listen_for_client();
	attached = -1;
	if (listening)
		attach_listener(k);
	client = socket(AF_INET, SOCK_STREAM, 0);
	must("connect", connect(client, (const void *)&address, sizeof(address)));
	accept_client();
	if (attached < 0)
		attach_server(k);
	use(k);
	must("destroy", lambdanic_ikernel_destroy(k));
	close(client);
	close(server);
	close(listener);
}

static void refuse(void)
{
	struct lambdanic_ikernel *k;

	must("create", lambdanic_ikernel_create(all, "echo", &k));
	listen_for_client();
	fails(lambdanic_ikernel_attach(k, listener));
	must("destroy", lambdanic_ikernel_destroy(k));
	close(listener);
}

/* Serves a client of the test's, and prints each number that comes. */
static void stay(void)
{
	struct lambdanic_ikernel *k = create();

	listen_for_client();
	attach_listener(k);
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	accept_client();
	if (attached < 0)
		attach_server(k);
	greet();
	for (;;) {
		receive();
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	must("usage: streams SOCKET [stay]", argc < 2 || argc > 3);
	must("open", lambdanic_ikernels_open(&all, argv[1]));
	if (argc == 3)
		stay();
	attach_and_use(false);
	attach_and_use(true);
	refuse();
	lambdanic_ikernels_close(all);
	return EXIT_SUCCESS;
}
