// SPDX-License-Identifier: Apache-2.0
/* Sending and receiving, many packets at a time. */
#include <errno.h>
#include <poll.h>
#include <sys/time.h>
#include <time.h>

#include "connection.h"

#define SHORT (10 * MS) /* a socket's time-out is in ticks, of up to 10 ms: shorter waits take another system call */

void set_up_socket(struct lambdanic *c)
{
	const int buffer = 4 << 20;

	for (int i = 0; i < RECEIVE_PACKETS; i++) {
		c->in_iov[i] = (struct iovec){ c->in_buf[i], RECEIVE_SIZE };
		c->in[i].msg_hdr = (struct msghdr){ .msg_iov = &c->in_iov[i], .msg_iovlen = 1 };
	}
	/* A failure here only costs speed. */
	if (setsockopt(c->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (setsockopt(c->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
}

/*
 * refused recognises an error that an earlier packet caused: an ICMP message, which the kernel reports to the next system call.
 * The caller goes on, as the lambda's server may be about to come back.
 */
static bool refused(struct lambdanic *c, int err)
{
	if (err != ECONNREFUSED && err != EHOSTUNREACH && err != ENETUNREACH)
		return false;
	c->network_error = err;
	c->network_error_at = now_ns();
	return true;
}

/* not_taken handles a packet that the network did not take. It returns whether to go on with the next packet. */
static bool not_taken(struct lambdanic *c, struct call *k, int err, unsigned int *tries)
{
	bool earlier = refused(c, err);

	if (earlier && (*tries)++ < 4)
		return false;
	if (err == EAGAIN) {
		poll(&(struct pollfd){ .fd = c->fd, .events = POLLOUT }, 1, 20);
		return false;
	}
	if (k && !earlier && err != ENOBUFS) { /* else it is lost, as anywhere on its way */
		k->send_error = err;
		make_ready(c, k);
	}
	*tries = 0;
	return true;
}

void flush(struct lambdanic *c)
{
	unsigned int from = 0, tries = 0, n;
	struct batch *b = &c->out;

	while (from < b->count) {
		n = batch_send(b, from, c->fd);
		c->stats.sent += n;
		from += n;
		if (!n && not_taken(c, b->out[from].owner, errno, &tries))
			from++;
	}
	b->count = 0;
}

/* set_wait sets how long a receive may sleep. The time rarely changes, so this is rarely a system call. */
static void set_wait(struct lambdanic *c, int64_t d)
{
	struct timeval tv;

	d = MAX(d / MS * MS, MS);
	if (d == c->receive_wait || (d > FIRST_INTERVAL - 2 * MS && c->receive_wait == FIRST_INTERVAL))
		return;
	d = MIN(d, FIRST_INTERVAL);
	tv = (struct timeval){ .tv_usec = d / 1000 };
	if (!setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
		c->receive_wait = d;
}

static void wait_exactly(struct lambdanic *c, int64_t d)
{
	const struct timespec ts = { .tv_nsec = d };

	ppoll(&(struct pollfd){ .fd = c->fd, .events = POLLIN }, 1, &ts, NULL);
}

static void packet(struct lambdanic *c, int64_t now, const uint8_t *p, size_t len)
{
	const uint8_t *payload;
	struct header h;
	struct call *k;

	c->stats.received++;
	if (packet_parse(p, len, &h, &payload) != PARSED) {
		c->stats.malformed++;
		return;
	}
	k = find_call(c, h.request);
	if (!k) {
		c->stats.stray++;
		return;
	}
	if (c->out.tagger && !tagger_accepts(c->out.tagger, &h, p))
		exchange_distrust(&k->x, &h);
	else
		exchange_receive(&k->x, now, &h, payload);
	make_ready(c, k);
}

/* one_expected says whether only a single packet can come: recvmmsg() would look for another in vain. */
static bool one_expected(const struct lambdanic *c)
{
	const struct call *k = (const struct call *)c->calls.next;

	return c->calls.next != &c->calls && c->calls.next == c->calls.prev && k->x.head.count == 1 && !k->x.pulling;
}

static int receive_one(struct lambdanic *c, int flags)
{
	ssize_t n = recv(c->fd, c->in_buf[0], RECEIVE_SIZE, flags & MSG_DONTWAIT);

	if (n < 0)
		return -1;
	c->in[0].msg_len = (unsigned int)n;
	return 1;
}

bool receive(struct lambdanic *c, int64_t *now, int64_t wake)
{
	const bool one = one_expected(c);
	int n, flags;

	do {
		flags = MSG_DONTWAIT;
		if (wake - *now >= SHORT && !c->options.spin) {
			set_wait(c, wake - *now);
			flags = MSG_WAITFORONE;
		} else if (wake > *now && !c->options.spin) {
			wait_exactly(c, wake - *now);
		}
		n = one ? receive_one(c, flags) : recvmmsg(c->fd, c->in, RECEIVE_PACKETS, flags, NULL);
		if (n < 0 && errno != EAGAIN && errno != EINTR && !refused(c, errno))
			return false;
		*now = now_ns();
	} while (n < 0 && flags == MSG_DONTWAIT && wake > *now);
	for (int i = 0; i < n; i++)
		packet(c, *now, c->in_buf[i], c->in[i].msg_len);
	return true;
}
