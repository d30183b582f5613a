// SPDX-License-Identifier: Apache-2.0
/*
 * One client of the benchmark suite `clients`: bench WAY ADDRESS WORKLOAD METHOD BODY WANT MILLISECONDS. It calls in a closed
 * loop, and prints the calls, the nanoseconds that they took, and the 50th, 99th and 99.9th percentile of one round.
 *
 *   raw     a bare connected socket, which sends the same packet again and again and ignores the answers
 *   client  lambdanic_call()
 *   raw64, client64: rounds of 64 at once, by sendmmsg() and recvmmsg(), and by lambdanic_call_many()
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define MANY 64
#define ROOM 512
#define MAX_ROUNDS 4000000

struct run {
	struct lambdanic *connection;
	struct lambdanic_request requests[MANY];
	struct lambdanic_reply replies[MANY];
	const char *want;
	int fd;
	size_t many;
	struct batch out;
	struct mmsghdr in[MANY];
	struct iovec iov[MANY];
	uint8_t buf[MANY][2048];
};

static struct run run;
static uint32_t rounds[MAX_ROUNDS];

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static void raw_one(void)
{
	if (sendmsg(run.fd, &run.out.msgs[0].msg_hdr, 0) < 0 || recv(run.fd, run.buf[0], sizeof(run.buf[0]), 0) < 0)
		fail("exchange");
}

static void raw_many(void)
{
	size_t got = 0;
	int n;

	if (batch_send(&run.out, 0, run.fd) != MANY)
		fail("send");
	while (got < MANY) {
		n = recvmmsg(run.fd, run.in, (unsigned int)(MANY - got), MSG_WAITFORONE, NULL);
		if (n < 0)
			fail("receive");
		got += (size_t)n;
	}
}

static void client(void)
{
	int err = lambdanic_call_many(run.connection, run.requests, run.replies, run.many);

	for (size_t i = 0; i < run.many; i++) {
		struct lambdanic_reply *r = &run.replies[i];

		if (err || r->status || r->len != strlen(run.want) || memcmp(r->body, run.want, r->len)) {
			fprintf(stderr, "wrong answer: %s, status %d, %zu bytes\n", lambdanic_strerror(err), r->status,
				r->len);
			exit(EXIT_FAILURE);
		}
		lambdanic_reply_free(r);
	}
}

/* prepare_raw makes the packets that the client would send, and a socket. */
static void prepare_raw(const char *address, const struct lambdanic_request *r)
{
	struct header h = { .type = LN_TYPE_REQUEST, .workload = r->workload, .method = r->method, .count = 1 };
	uint32_t single;

	if (connect_to(address, LN_RPC_PORT, SOCK_DGRAM, NEVER, &run.fd, &single))
		fail(address);
	h.message_len = (uint32_t)r->len;
	for (size_t i = 0; i < MANY; i++) {
		h.request++;
		batch_add(&run.out, &h, r->body, h.message_len, ROOM);
		run.iov[i] = (struct iovec){ run.buf[i], sizeof(run.buf[i]) };
		run.in[i].msg_hdr = (struct msghdr){ .msg_iov = &run.iov[i], .msg_iovlen = 1 };
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void measure(void (*round)(void), int64_t duration)
{
	int64_t start, before, now;
	size_t n = 0;

	for (int i = 0; i < 100; i++)
		round();
	for (start = before = now_ns(); n < MAX_ROUNDS && before - start < duration; before = now) {
		round();
		now = now_ns();
		rounds[n++] = (uint32_t)MIN(now - before, UINT32_MAX);
	}
	qsort(rounds, n, sizeof(*rounds), compare);
	printf("%zu %lld %u %u %u\n", n * run.many, (long long)(before - start), rounds[n / 2], rounds[n * 99 / 100],
	       rounds[n * 999 / 1000]);
}

int main(int argc, char **argv)
{
	struct lambdanic_request r = { 0 };
	bool raw;

	if (argc != 8) {
		fprintf(stderr, "usage: %s WAY ADDRESS WORKLOAD METHOD BODY WANT MILLISECONDS\n", argv[0]);
		return EXIT_FAILURE;
	}
	raw = !strncmp(argv[1], "raw", 3);
	run.many = strstr(argv[1], "64") ? MANY : 1;
	run.want = argv[6];
	r.workload = (uint32_t)strtoul(argv[3], NULL, 0);
	r.method = (uint32_t)strtoul(argv[4], NULL, 0);
	r.body = argv[5];
	r.len = strlen(argv[5]);
	for (size_t i = 0; i < MANY; i++)
		run.requests[i] = r;
	if (raw)
		prepare_raw(argv[2], &r);
	else if (lambdanic_open(&run.connection, argv[2], NULL))
		fail(argv[2]);
	measure(raw ? run.many > 1 ? raw_many : raw_one : client, atoll(argv[7]) * MS);
	lambdanic_close(run.connection);
	return EXIT_SUCCESS;
}
