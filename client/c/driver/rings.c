// SPDX-License-Identifier: Apache-2.0
/*
 * For the tests, uses rings and notes: rings SOCKET use, rings SOCKET echo COUNT wait|poll, rings SOCKET records, or
 * rings SOCKET fault|outlive. test/ikernels
 * compares what the programs of all languages print.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lambdanic.h"

#define MESSAGES 30
#define RINGS 4

static struct lambdanic_ikernels *all;
static int server, client;
static struct sockaddr_in server_address, client_address;
static uint8_t message[100];
static uint64_t sent; /* to the ikernel */

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

static void bind_socket(int fd, struct sockaddr_in *own)
{
	socklen_t len = sizeof(*own);

	*own = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	must("bind", bind(fd, (const void *)own, sizeof(*own)));
	must("bind", getsockname(fd, (void *)own, &len));
}

static void open_sockets(void)
{
	server = socket(AF_INET, SOCK_DGRAM, 0);
	client = socket(AF_INET, SOCK_DGRAM, 0);
	bind_socket(server, &server_address);
	bind_socket(client, &client_address);
	must("connect", connect(client, (const void *)&server_address, sizeof(server_address)));
}

/* Sends a message, and waits until the ikernel has posted or refused it. */
static struct lambdanic_ring_counts send_message(struct lambdanic_ikernel *k, const void *data, size_t len)
{
	struct lambdanic_ring_counts counts[RINGS], sum;

	sent++;
	must("send", send(client, data, len, 0) != (ssize_t)len);
	do {
		must("count", lambdanic_rings_count(k, counts, RINGS));
		sum = (struct lambdanic_ring_counts){ 0 };
		for (size_t i = 0; i < RINGS; i++) {
			sum.posted += counts[i].posted;
			sum.refused += counts[i].refused;
		}
	} while (sum.posted + sum.refused < sent);
	return sum;
}

static bool is_address(socklen_t len, const struct sockaddr_storage *got, const struct sockaddr_in *want)
{
	return len == sizeof(*want) && !memcmp(got, want, sizeof(*want));
}

static bool is_message(const struct lambdanic_message *m, int number)
{
	struct sockaddr_storage from, to;

	memset(message, number, sizeof(message));
	return m->len == sizeof(message) && !memcmp(m->data, message, m->len) && m->head->time_ns &&
	       is_address(lambdanic_message_from(m, &from), &from, &client_address) &&
	       is_address(lambdanic_message_to(m, &to), &to, &server_address);
}

static void use_badly(struct lambdanic_ikernel *k)
{
	struct lambdanic_rings none = { 0 }, odd = { 1, 5000, false };
	struct lambdanic_ring *ring[1];

	fails(lambdanic_rings_open(k, &none, ring));
	fails(lambdanic_rings_open(k, &odd, ring));
	if (lambdanic_rings_open(NULL, &odd, ring) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_rings_open(k, NULL, ring) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_rings_open(k, &odd, NULL) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_rings_count(k, NULL, 1) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_ring_poll(NULL, NULL) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_ring_read(NULL, NULL, 0) != LAMBDANIC_BAD_ARGUMENT || lambdanic_ring_fd(NULL) != -1 ||
	    lambdanic_notes_open(NULL, NULL) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_notes_reserve(NULL, 1, NULL) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_notes_deliver(NULL, NULL) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_ikernel_fault(NULL, NULL) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_ikernel_fault_fd(NULL, NULL) != LAMBDANIC_BAD_ARGUMENT)
		puts("bad arguments are accepted");
	lambdanic_ring_release(NULL);
}

/* Fills a ring, and empties it. */
static void use_ring(struct lambdanic_ikernel *k)
{
	struct lambdanic_rings one = { 1, (uint32_t)getpagesize(), false };
	struct lambdanic_ring_counts counts = { 0 };
	struct lambdanic_message m;
	struct lambdanic_ring *ring;
	struct pollfd readable;
	int n = 0;

	must("open a ring", lambdanic_rings_open(k, &one, &ring));
	fails(lambdanic_rings_open(k, &one, &ring));
	must("attach", lambdanic_ikernel_attach(k, server));
	for (int i = 0; i < MESSAGES; i++) {
		memset(message, i, sizeof(message));
		counts = send_message(k, message, sizeof(message));
	}
	printf("posted %" PRIu64 ", refused %" PRIu64 "\n", counts.posted, counts.refused);
	readable = (struct pollfd){ lambdanic_ring_fd(ring), POLLIN, 0 };
	must("be readable", poll(&readable, 1, 0) != 1);
	while (lambdanic_ring_poll(ring, &m) == 1 && is_message(&m, n))
		n++;
	printf("polled %d\n", n);
	memset(message, n, sizeof(message));
	send_message(k, message, sizeof(message));
	must("read", lambdanic_ring_read(ring, &m, -1) != 1 || !is_message(&m, n));
	lambdanic_ring_release(ring);
	must("not be readable", poll(&readable, 1, 0));
	must("read nothing", lambdanic_ring_read(ring, &m, 10));
	puts("no more");
	must("detach", lambdanic_ikernel_detach(k, server));
}

static void write_note(struct lambdanic_notes *notes, uint32_t *delivered, uint32_t ring, uint32_t key)
{
	const uint32_t note[2] = { ring, key };
	uint32_t n;
	void *to;
	int err;

	err = lambdanic_notes_reserve(notes, sizeof(note), &to);
	if (err == LAMBDANIC_FULL) {
		must("deliver", lambdanic_notes_deliver(notes, &n));
		*delivered += n;
		err = lambdanic_notes_reserve(notes, sizeof(note), &to);
	}
	must("reserve", err);
	memcpy(to, note, sizeof(note));
}

/* Has messages come by the rings that notes say. */
static void use_notes(struct lambdanic_ikernel *k)
{
	struct lambdanic_rings polled = { RINGS, (uint32_t)getpagesize(), true };
	struct lambdanic_ring *ring[RINGS];
	uint32_t n, delivered = 0, right = 0;
	struct lambdanic_notes *notes, *other;
	struct lambdanic_message m;
	void *to;

	must("write", lambdanic_ikernel_write(k, "length", sizeof(n)));
	must("open rings", lambdanic_rings_open(k, &polled, ring));
	must("attach", lambdanic_ikernel_attach(k, server));
	must("open notes", lambdanic_notes_open(k, &notes));
	fails(lambdanic_notes_open(k, &other));
	if (lambdanic_ring_read(ring[0], &m, 0) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_notes_reserve(notes, 1 << 16, &to) != LAMBDANIC_BAD_ARGUMENT)
		puts("bad arguments are accepted");
	for (uint32_t i = 0; i < 5000; i++)
		write_note(notes, &delivered, 0, i);
	must("deliver", lambdanic_notes_deliver(notes, &n));
	printf("delivered %u\n", delivered + n);
	for (uint32_t key = 0; key < 20; key++) {
		write_note(notes, &delivered, key % RINGS, key);
		must("deliver", lambdanic_notes_deliver(notes, NULL));
		send_message(k, &key, sizeof(key));
		right += lambdanic_ring_poll(ring[key % RINGS], &m) == 1 && m.len == sizeof(key) &&
			 !memcmp(m.data, &key, m.len);
	}
	printf("%u keys by their rings\n", right);
}

static void use(void)
{
	struct lambdanic_ikernel *k;

	must("create", lambdanic_ikernel_create(all, "steering", &k));
	use_badly(k);
	use_ring(k);
	must("destroy", lambdanic_ikernel_destroy(k));
	must("create", lambdanic_ikernel_create(all, "steering", &k));
	sent = 0;
	use_notes(k);
}

/* Sends messages back, which have their numbers in order. */
static void echo(uint64_t count, bool polled)
{
	struct lambdanic_rings one = { 1, 1 << 16, polled };
	struct lambdanic_ikernel *k;
	struct lambdanic_message m;
	struct lambdanic_ring *ring;
	struct sockaddr_storage from;
	uint64_t number;
	socklen_t len;
	int got;

	must("create", lambdanic_ikernel_create(all, "steering", &k));
	must("open a ring", lambdanic_rings_open(k, &one, &ring));
	must("attach", lambdanic_ikernel_attach(k, server));
	printf("%d\n", ntohs(server_address.sin_port));
	fflush(stdout);
	for (uint64_t i = 0; i < count; i++) {
		do
			got = polled ? lambdanic_ring_poll(ring, &m) : lambdanic_ring_read(ring, &m, -1);
		while (!got);
		must("read", got != 1);
		memcpy(&number, m.data, sizeof(number));
		if (number != i)
			printf("got message %" PRIu64 ", want %" PRIu64 "\n", number, i);
		len = lambdanic_message_from(&m, &from);
		must("answer", sendto(server, m.data, m.len, 0, (const void *)&from, len) != (ssize_t)m.len);
	}
	puts("done");
}

static void print_record(const struct lambdanic_message *m)
{
	char host[INET6_ADDRSTRLEN], port[6];
	struct sockaddr_storage from;
	socklen_t len = lambdanic_message_from(m, &from);

	must("name", getnameinfo((const void *)&from, len, host, sizeof(host), port, sizeof(port),
				 NI_NUMERICHOST | NI_NUMERICSERV));
	printf("%.*s from %s %s\n", (int)m->len, (const char *)m->data, host, port);
}

/* Prints what a ring has, each time that the daemon has changed it. */
static void records(void)
{
	struct lambdanic_rings one = { 1, (uint32_t)getpagesize(), true };
	struct lambdanic_ring_counts counts;
	struct lambdanic_ikernel *k;
	struct lambdanic_message m;
	struct lambdanic_ring *ring;

	must("create", lambdanic_ikernel_create(all, "fake", &k));
	must("open a ring", lambdanic_rings_open(k, &one, &ring));
	do {
		while (lambdanic_ring_poll(ring, &m) == 1)
			print_record(&m);
		puts("none");
		must("count", lambdanic_rings_count(k, &counts, 1));
	} while (counts.posted);
}

/* Says what waits for an ikernel learns. */
static void print_fault(struct lambdanic_ikernel *k, struct lambdanic_ring *ring)
{
	struct lambdanic_fault fault;
	struct lambdanic_message m;
	struct pollfd readable;
	int err = lambdanic_ring_read(ring, &m, -1);

	puts(err == LAMBDANIC_FAULTED ? "the ring ends by a fault" : "the ring ends with the daemon");
	must("wait", lambdanic_ikernel_fault_fd(k, &readable.fd));
	readable.events = POLLIN;
	must("wait", poll(&readable, 1, -1) != 1);
	err = lambdanic_ikernel_fault(k, &fault);
	if (err)
		printf("no daemon\n");
	else
		printf("%u: %s\n", fault.code, fault.text);
}

static void fault(void)
{
	struct lambdanic_rings one = { 1, (uint32_t)getpagesize(), false };
	const uint32_t note[10] = { 1 }; /* a field without a name */
	struct lambdanic_fault none;
	struct lambdanic_ikernel *k;
	struct lambdanic_ring *ring;
	struct lambdanic_notes *notes;
	int64_t fields;
	void *to;

	must("create", lambdanic_ikernel_create(all, "deserialize", &k));
	must("open a ring", lambdanic_rings_open(k, &one, &ring));
	must("open notes", lambdanic_notes_open(k, &notes));
	must("attach", lambdanic_ikernel_attach(k, server));
	must("have no fault", lambdanic_ikernel_fault(k, &none) || none.code);
	must("reserve", lambdanic_notes_reserve(notes, sizeof(note), &to));
	memcpy(to, note, sizeof(note));
	fails(lambdanic_notes_deliver(notes, NULL));
	print_fault(k, ring);
	must("fault", lambdanic_ikernel_attach(k, server) != LAMBDANIC_FAULTED);
	fails(lambdanic_ikernel_attach(k, server));
	must("read", lambdanic_ikernel_read(k, "fields", &fields));
	printf("fields %" PRId64 "\n", fields);
	must("destroy", lambdanic_ikernel_destroy(k));
	must("create", lambdanic_ikernel_create(all, "deserialize", &k));
	must("attach", lambdanic_ikernel_attach(k, server));
}

/* Waits until the daemon ends. */
static void outlive(void)
{
	struct lambdanic_rings one = { 1, (uint32_t)getpagesize(), false };
	struct lambdanic_ikernel *k;
	struct lambdanic_ring *ring;

	must("create", lambdanic_ikernel_create(all, "steering", &k));
	must("open a ring", lambdanic_rings_open(k, &one, &ring));
	puts("ready");
	fflush(stdout);
	print_fault(k, ring);
}

int main(int argc, char **argv)
{
	must("usage: rings SOCKET use|echo|records|fault|outlive", argc < 3);
	must("open", lambdanic_ikernels_open(&all, argv[1]));
	open_sockets();
	if (!strcmp(argv[2], "use"))
		use();
	else if (!strcmp(argv[2], "echo") && argc == 5)
		echo(strtoull(argv[3], NULL, 10), !strcmp(argv[4], "poll"));
	else if (!strcmp(argv[2], "fault"))
		fault();
	else if (!strcmp(argv[2], "outlive"))
		outlive();
	else
		records();
	lambdanic_ikernels_close(all);
	return EXIT_SUCCESS;
}
