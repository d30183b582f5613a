// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's loop: receive a batch of datagrams, work on each in its buffer, send a batch. One socket per worker and address
 * (SO_REUSEPORT), so that the kernel spreads clients over the workers and no two share a socket's lock.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

enum { SOCKET_BUFFER = 4 << 20 };

uint64_t clock_coarse(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

socklen_t address_len(const union address *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

/* The forced variants need a privilege that we may lack; the others stop at the system's limit. */
static void set_buffers(int fd)
{
	int size = SOCKET_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static int listen_on(const union address *addr)
{
	int one = 1, err, fd = socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) ||
	    (addr->sa.sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one))) ||
	    bind(fd, &addr->sa, address_len(addr))) {
		err = -errno;
		close(fd);
		return err;
	}
	set_buffers(fd);
	return fd;
}

int server_open(struct worker *w)
{
	w->buffers = calloc(BATCH, sizeof(*w->buffers));
	if (!w->buffers)
		return -ENOMEM;
	for (unsigned int i = 0; i < BATCH; i++) {
		w->packets[i].base = w->buffers[i] + HEAD_ROOM;
		w->in[i].msg_hdr.msg_iov = &w->in_iov[i];
		w->in[i].msg_hdr.msg_iovlen = 1;
		w->in[i].msg_hdr.msg_name = &w->packets[i].flow.peer;
	}
	for (unsigned int i = 0; i < host.listen_count; i++) {
		w->fds[i] = listen_on(&host.listen[i]);
		if (w->fds[i] < 0)
			return w->fds[i];
	}
	return 0;
}

/* A packet to make an answer in, where there is no datagram at hand. There are as many as sends. */
struct packet *server_spare(struct worker *w)
{
	return &w->packets[w->sends];
}

void server_send(struct worker *w, struct packet *p)
{
	if (p->out_len)
		w->sending[w->sends++] = p;
}

/* Sends what the batch came to. A datagram that the kernel refuses is lost, as on any network; the rest goes out. */
static void flush(struct worker *w)
{
	struct mmsghdr out[BATCH];
	struct iovec iov[BATCH];
	unsigned int at = 0, n;

	for (unsigned int i = 0; i < w->sends; i++) {
		struct packet *p = w->sending[i];

		iov[i] = (struct iovec){ p->out, p->out_len };
		out[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
		if (!p->to_service) {
			out[i].msg_hdr.msg_name = &p->flow.peer;
			out[i].msg_hdr.msg_namelen = address_len(&p->flow.peer);
		}
	}
	while (at < w->sends) {
		int fd = w->sending[at]->out_fd, sent;

		for (n = 1; at + n < w->sends && w->sending[at + n]->out_fd == fd; n++)
			;
		sent = sendmmsg(fd, out + at, n, 0);
		/* A connected socket first tells of an earlier datagram's fate; then it sends. */
		if (sent < 0 && errno == ECONNREFUSED)
			sent = sendmmsg(fd, out + at, n, 0);
		at += sent > 0 ? sent : 1;
	}
	w->sends = 0;
}

/* Receives at most a batch, with head bytes of each datagram placed before its payload. */
static int receive(struct worker *w, int fd, unsigned int head, int flags)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		w->in_iov[i] = (struct iovec){ w->packets[i].base - head, head + LN_RPC_MAX_PAYLOAD };
		w->in[i].msg_hdr.msg_namelen = sizeof(w->packets[i].flow.peer);
	}
	return recvmmsg(fd, w->in, BATCH, flags, NULL);
}

static void serve(struct worker *w, int fd, int n)
{
	w->now = clock_coarse();
	pthread_rwlock_rdlock(&host.world);
	for (int i = 0; i < n; i++) {
		struct packet *p = &w->packets[i];

		p->flow.fd = fd;
		rpc_receive(w, p, w->in[i].msg_len);
		server_send(w, p);
	}
	pthread_rwlock_unlock(&host.world);
	flush(w);
}

static void serve_answers(struct worker *w, unsigned int service, int n)
{
	w->now = clock_coarse();
	pthread_rwlock_rdlock(&host.world);
	for (int i = 0; i < n; i++) {
		call_receive(w, &w->packets[i], service, w->in[i].msg_len);
		server_send(w, &w->packets[i]);
	}
	pthread_rwlock_unlock(&host.world);
	flush(w);
}

static void expire(struct worker *w)
{
	uint64_t now = clock_coarse();

	if (now == w->now)
		return;
	w->now = now;
	pthread_rwlock_rdlock(&host.world);
	call_expire(w);
	pthread_rwlock_unlock(&host.world);
	flush(w);
}

static void take(struct worker *w, unsigned int i, int flags)
{
	int n = receive(w, w->fds[i], HEADER, flags);

	if (n > 0)
		serve(w, w->fds[i], n);
}

static void take_answers(struct worker *w, unsigned int service)
{
	int n = w->service_fds[service] < 0 ? 0 : receive(w, w->service_fds[service], CALL_FRAME, MSG_DONTWAIT);

	if (n > 0)
		serve_answers(w, service, n);
}

static void spin(struct worker *w)
{
	for (unsigned int i = 0; i < host.listen_count; i++)
		take(w, i, MSG_DONTWAIT);
	for (unsigned int i = 0; i < host.service_count; i++)
		take_answers(w, i);
}

/* Sleeps until a socket has something to read or a call is due. */
static void block(struct worker *w)
{
	struct pollfd fds[MAX_LISTEN + MAX_SERVICES], *services = fds + host.listen_count;
	uint64_t due = call_next_due(w), now = clock_coarse();
	uint64_t left = due > now ? due - now : 0;
	struct timespec timeout = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };

	for (unsigned int i = 0; i < host.listen_count; i++)
		fds[i] = (struct pollfd){ w->fds[i], POLLIN, 0 };
	for (unsigned int i = 0; i < host.service_count; i++)
		services[i] = (struct pollfd){ w->service_fds[i], POLLIN, 0 };
	if (ppoll(fds, host.listen_count + host.service_count, due == UINT64_MAX ? NULL : &timeout, NULL) <= 0)
		return;
	for (unsigned int i = 0; i < host.service_count; i++) {
		if (services[i].revents)
			take_answers(w, i);
	}
	for (unsigned int i = 0; i < host.listen_count; i++) {
		if (fds[i].revents)
			take(w, i, MSG_DONTWAIT);
	}
}

static void pin(const struct worker *w)
{
	cpu_set_t set;

	if (host.first_cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(host.first_cpu + w->id, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		warn("thread %u: cannot be pinned to CPU %u", w->id, host.first_cpu + w->id);
}

void *server_run(void *worker)
{
	struct worker *w = worker;

	pin(w);
	if (guard_thread(w))
		err(1, "thread %u: alternate signal stack", w->id);
	for (;;) {
		if (host.spin)
			spin(w);
		else if (host.listen_count == 1 && !host.service_count)
			take(w, 0, MSG_WAITFORONE);
		else
			block(w);
		if (host.service_count)
			expire(w);
	}
	return NULL;
}
