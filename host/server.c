// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's loop: receive a batch of datagrams, work on each in its buffer, send a batch. Each worker has a socket
 * per address (SO_REUSEPORT), so that the kernel spreads clients over the workers and no two share a socket's lock.
 */
#include <err.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

#define LONGEST_WAIT_NS 60000000000ULL /* in a socket; if a wait seems longer, the clock was set */

enum {
	SOCKET_BUFFER = 4 << 20,
	SEGMENTS = 40, /* per message: within 64 KiB at any size of ours, and within the kernel's UDP_MAX_SEGMENTS */
};

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
	(void)setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)); /* older kernels hand packets over singly */
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	return fd;
}

int server_open(struct worker *w)
{
	uint8_t(*spares)[BUFFER] = calloc(SENDS, sizeof(*spares));

	/* Datagrams only touch the pages that they need. */
	w->datagrams = mmap(NULL, BATCH * sizeof(*w->datagrams), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!spares || w->datagrams == MAP_FAILED)
		return -ENOMEM;
	for (unsigned int i = 0; i < SENDS; i++)
		w->packets[i].spare = spares[i];
	for (unsigned int i = 0; i < host.listen_count; i++) {
		w->fds[i] = listen_on(&host.listen[i]);
		if (w->fds[i] < 0)
			return w->fds[i];
	}
	return 0;
}

/* Whether a packet can be sent in one message with those before it: to the same peer, and as long or the last. */
static bool joins(const struct packet *first, const struct packet *last, const struct packet *p)
{
	return p->out_fd == first->out_fd && !p->to_service && !first->to_service && last->out_len == first->out_len &&
	       p->out_len <= first->out_len &&
	       !memcmp(&p->flow.peer, &first->flow.peer, address_len(&first->flow.peer));
}

/* Joins as many packets as possible into one message; returns how many. */
static unsigned int gather(struct packet *first, unsigned int most, struct msghdr *msg, struct iovec *iov,
			   union control *control)
{
	unsigned int n = 0;

	do {
		iov[n] = (struct iovec){ first[n].out, first[n].out_len };
		n++;
	} while (n < most && n < SEGMENTS && joins(first, &first[n - 1], &first[n]));
	*msg = (struct msghdr){ .msg_iov = iov, .msg_iovlen = n };
	if (!first->to_service) {
		msg->msg_name = &first->flow.peer;
		msg->msg_namelen = address_len(&first->flow.peer);
	}
	if (n > 1) {
		msg->msg_control = control;
		msg->msg_controllen = CMSG_SPACE(sizeof(uint16_t));
		control->align.cmsg_level = IPPROTO_UDP;
		control->align.cmsg_type = UDP_SEGMENT;
		control->align.cmsg_len = CMSG_LEN(sizeof(uint16_t));
		*(uint16_t *)CMSG_DATA(&control->align) = first->out_len;
	}
	return n;
}

/*
 * Sends a message's packets one by one: a device may refuse to segment. A packet that the kernel refuses is lost, as
 * on any network.
 */
static void send_singly(int fd, struct msghdr *msg)
{
	struct msghdr one = { .msg_name = msg->msg_name, .msg_namelen = msg->msg_namelen, .msg_iovlen = 1 };

	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		one.msg_iov = &msg->msg_iov[i];
		(void)!sendmsg(fd, &one, 0);
	}
}

/* Sends the batch's answers. */
static void flush(struct worker *w)
{
	struct mmsghdr out[SENDS];
	struct iovec iov[SENDS];
	union control control[SENDS];
	unsigned int at = 0, n, packets;
	int fd, sent;

	while (at < w->sends) {
		fd = w->packets[at].out_fd;
		for (n = 0; at < w->sends && w->packets[at].out_fd == fd; n++, at += packets)
			packets = gather(&w->packets[at], w->sends - at, &out[n].msg_hdr, &iov[at], &control[n]);
		for (unsigned int i = 0; i < n; i += sent) {
			sent = sendmmsg(fd, out + i, n - i, 0);
			if (sent > 0)
				continue;
			send_singly(fd, &out[i].msg_hdr);
			sent = 1;
		}
	}
	w->sends = 0;
	w->guard.asks = NULL;
}

/* A packet to make an answer in. */
struct packet *server_spare(struct worker *w)
{
	struct packet *p = &w->packets[w->sends];

	p->base = p->spare + HEAD_ROOM;
	p->out_len = 0;
	return p;
}

/* Sends the packet that server_spare() gave last, if there is an answer in it. */
void server_send(struct worker *w, struct packet *p)
{
	if (p->out_len && ++w->sends == SENDS)
		flush(w);
}

static void prepare(struct worker *w, unsigned int head, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		w->in_iov[i] = (struct iovec){ w->datagrams[i] + HEAD_ROOM - head, DATAGRAM - HEAD_ROOM };
		w->in[i].msg_hdr = (struct msghdr){
			.msg_iov = &w->in_iov[i],
			.msg_iovlen = 1,
			.msg_name = &w->in_peer[i],
			.msg_namelen = sizeof(w->in_peer[i]),
			.msg_control = &w->in_control[i],
			.msg_controllen = sizeof(w->in_control[i]),
		};
	}
	w->in_head = head;
}

/* Receives at most a batch, with head bytes of each datagram placed before its payload. */
static int receive(struct worker *w, int fd, unsigned int head, int flags)
{
	int n;

	prepare(w, head, head == w->in_head ? w->in_used : BATCH);
	n = recvmmsg(fd, w->in, BATCH, flags, NULL);
	w->in_used = n > 0 ? n : 1;
	return n;
}

static uint64_t clock_wall(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/*
 * The size of the packets that the kernel joined to one datagram, or the datagram's own. Also sets how long the datagram waited; 0 if
 * the clock was set meanwhile.
 */
static uint32_t segment_size(struct worker *w, struct mmsghdr *in)
{
	struct timespec came;
	uint64_t since;
	int size = 0;

	w->waited_ns = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&in->msg_hdr); c; c = CMSG_NXTHDR(&in->msg_hdr, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&size, CMSG_DATA(c), sizeof(size));
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
			memcpy(&came, CMSG_DATA(c), sizeof(came));
			since = came.tv_sec * 1000000000ULL + came.tv_nsec;
			if (w->wall > since && w->wall - since < LONGEST_WAIT_NS)
				w->waited_ns = w->wall - since;
		}
	}
	return size > 0 ? size : in->msg_len;
}

static void serve_datagram(struct worker *w, int fd, unsigned int i)
{
	uint32_t len = w->in[i].msg_len, size = segment_size(w, &w->in[i]);

	for (uint32_t at = 0; at < len; at += size) {
		struct packet *p = server_spare(w);

		p->base = w->datagrams[i] + HEAD_ROOM + at;
		p->flow.peer = w->in_peer[i];
		p->flow.fd = fd;
		rpc_receive(w, p, size < len - at ? size : len - at);
		server_send(w, p);
	}
}

static void serve(struct worker *w, int fd, int n)
{
	w->now = clock_coarse();
	w->wall = clock_wall();
	pthread_rwlock_rdlock(&host.world);
	for (int i = 0; i < n; i++)
		serve_datagram(w, fd, i);
	pthread_rwlock_unlock(&host.world);
	flush(w);
}

static void serve_answers(struct worker *w, unsigned int server, int n)
{
	w->now = clock_coarse();
	pthread_rwlock_rdlock(&host.world);
	for (int i = 0; i < n; i++) {
		struct packet *p = server_spare(w);

		p->base = w->datagrams[i] + HEAD_ROOM;
		rpc_answer(w, p, server, w->in[i].msg_len);
		server_send(w, p);
	}
	pthread_rwlock_unlock(&host.world);
	flush(w);
}

/* Answers the clients of calls that were not answered in time. */
static void expire(struct worker *w)
{
	uint64_t now = clock_coarse();
	const struct call *call;

	if (now == w->now)
		return;
	w->now = now;
	pthread_rwlock_rdlock(&host.world);
	while ((call = call_overdue(w))) {
		struct packet *p = server_spare(w);

		rpc_abandon(w, p, call, LN_CODE_TIMEOUT);
		server_send(w, p);
	}
	pthread_rwlock_unlock(&host.world);
	flush(w);
}

static void take(struct worker *w, unsigned int i, int flags)
{
	int n = receive(w, w->fds[i], HEADER, flags);

	if (n > 0)
		serve(w, w->fds[i], n);
}

static void take_answers(struct worker *w, unsigned int server)
{
	int n = w->server_fds[server] < 0 ? 0 : receive(w, w->server_fds[server], CALL_FRAME, MSG_DONTWAIT);

	if (n > 0)
		serve_answers(w, server, n);
}

/* Takes one answer from each call's own socket that has some. */
static void take_raw(struct worker *w)
{
	struct epoll_event ready[BATCH];
	int n = w->raw_fd < 0 ? 0 : epoll_wait(w->raw_fd, ready, BATCH, 0);

	if (n <= 0)
		return;
	w->now = clock_coarse();
	pthread_rwlock_rdlock(&host.world);
	for (int i = 0; i < n; i++) {
		struct packet *p = server_spare(w);
		struct call *call = ready[i].data.ptr;
		ssize_t len;

		p->base = w->datagrams[i] + HEAD_ROOM;
		len = recv(call->fd, p->base, DATAGRAM - HEAD_ROOM, MSG_DONTWAIT);
		if (len < 0)
			continue;
		rpc_answer_raw(w, p, call, len);
		server_send(w, p);
	}
	pthread_rwlock_unlock(&host.world);
	flush(w);
}

static void spin(struct worker *w)
{
	for (unsigned int i = 0; i < host.listen_count; i++)
		take(w, i, MSG_DONTWAIT);
	for (unsigned int i = 0; i < host.server_count; i++)
		take_answers(w, i);
	take_raw(w);
}

/* Sleeps until a socket has something to read or a call is due. */
static void block(struct worker *w)
{
	struct pollfd fds[MAX_LISTEN + MAX_SERVERS + 1], *servers = fds + host.listen_count;
	uint64_t due = call_next_due(w), now = clock_coarse();
	uint64_t left = due > now ? due - now : 0;
	struct timespec timeout = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };

	for (unsigned int i = 0; i < host.listen_count; i++)
		fds[i] = (struct pollfd){ w->fds[i], POLLIN, 0 };
	for (unsigned int i = 0; i < host.server_count; i++)
		servers[i] = (struct pollfd){ w->server_fds[i], POLLIN, 0 };
	servers[host.server_count] = (struct pollfd){ w->raw_fd, POLLIN, 0 };
	if (ppoll(fds, host.listen_count + host.server_count + 1, due == UINT64_MAX ? NULL : &timeout, NULL) <= 0)
		return;
	for (unsigned int i = 0; i < host.server_count; i++) {
		if (servers[i].revents)
			take_answers(w, i);
	}
	if (servers[host.server_count].revents)
		take_raw(w);
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

static void *run(void *worker)
{
	struct worker *w = worker;

	pin(w);
	if (guard_thread(&w->guard, host.run_limit_ns))
		err(1, "thread %u: alternate signal stack", w->id);
	while (sem_wait(&host.loaded))
		;
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

/* Starts the worker's thread, which serves as soon as a revision is loaded. */
int server_start(struct worker *w)
{
	return -pthread_create(&w->thread, NULL, run, w);
}
