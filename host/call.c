// SPDX-License-Identifier: Apache-2.0
/*
 * External calls: a lambda's request to a memcached service over UDP. The frame header's 16-bit request ID
 * (memcached's doc/protocol.txt) is the index of the call's record. Each worker has its own sockets and so its own
 * IDs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"

struct memcached_frame {
	uint16_t request;
	uint16_t sequence;
	uint16_t total;
	uint16_t reserved;
};

/*
 * How long a timed-out call's ID is not used again, so that a late answer finds nobody. The NIC program tells uses
 * of an ID apart by port, and needs less.
 */
#define REST_NS 1000000000ULL

static atomic_uint active;

int call_init(struct worker *w)
{
	size_t size = LN_MAX_CALLS * sizeof(*w->calls);

	TAILQ_INIT(&w->idle);
	TAILQ_INIT(&w->late);
	for (unsigned int i = 0; i < host.service_count; i++) {
		TAILQ_INIT(&w->waiting[i]);
		w->service_fds[i] = -1;
	}
	if (!host.service_count)
		return 0;
	w->calls = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->calls == MAP_FAILED)
		return -errno;
	for (unsigned int i = 0; i < LN_MAX_CALLS; i++)
		TAILQ_INSERT_TAIL(&w->idle, &w->calls[i], order);
	return 0;
}

/*
 * The connected socket to a service: the kernel lets only its answers in. Opened at need, as its route may come
 * late.
 */
static int service_fd(struct worker *w, unsigned int service)
{
	const union address *addr = &host.services[service].addr;
	int size = 4 << 20, fd = w->service_fds[service];

	if (fd >= 0)
		return fd;
	fd = socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (connect(fd, &addr->sa, address_len(addr))) {
		close(fd);
		return -1;
	}
	w->service_fds[service] = fd;
	return fd;
}

/* Sends what the lambda described to its service. Returns 0 or an error code for the client. */
int call_begin(struct worker *w, struct packet *p, struct revision *rev)
{
	uint32_t service = w->req.service, len = w->req.out_len;
	uint8_t *at = reply_claim(p, w->req.out_off, len);
	struct memcached_frame frame = { .total = htobe16(1) };
	struct call *call = TAILQ_FIRST(&w->idle);
	int fd;

	if (service >= host.service_count || !at)
		return LN_CODE_LAMBDA_FAULT;
	if (!call || (atomic_load(&host.draining) && !atomic_load(&host.succeeded)))
		return LN_CODE_BUSY;
	fd = service_fd(w, service);
	if (fd < 0)
		return LN_CODE_UNREACHABLE;
	TAILQ_REMOVE(&w->idle, call, order);
	call->due_ns = w->now + host.services[service].timeout_ms * 1000000ULL;
	call->revision = rev;
	call->waiting = true;
	call->service = service;
	memcpy(call->cookie, w->req.match.cookie, sizeof(call->cookie));
	call->flow = p->flow;
	TAILQ_INSERT_TAIL(&w->waiting[service], call, order);
	atomic_fetch_add(&rev->users, 1);
	atomic_fetch_add(&active, 1);

	frame.request = htobe16(call - w->calls);
	p->out = at - sizeof(frame);
	memcpy(p->out, &frame, sizeof(frame));
	p->out_len = sizeof(frame) + len;
	p->out_fd = fd;
	p->to_service = true;
	return 0;
}

/* Takes a call out of flight. What its record says stays until the next call begins. */
static void end(struct worker *w, struct call *call, struct call_list *to)
{
	TAILQ_REMOVE(&w->waiting[call->service], call, order);
	TAILQ_INSERT_TAIL(to, call, order);
	call->waiting = false;
	atomic_fetch_sub(&call->revision->users, 1);
	atomic_fetch_sub(&active, 1);
}

/* Takes a service's datagram of len bytes, whose frame header stands right before p->base. */
void call_receive(struct worker *w, struct packet *p, unsigned int service, uint32_t len)
{
	struct memcached_frame frame;
	struct call *call;

	p->out_len = 0;
	if (len < sizeof(frame))
		return;
	memcpy(&frame, p->base - sizeof(frame), sizeof(frame));
	call = &w->calls[be16toh(frame.request)];
	if (!call->waiting || call->service != service)
		return;
	end(w, call, &w->idle);
	if (frame.total == htobe16(1))
		rpc_resume(w, p, call, len - sizeof(frame));
	else
		rpc_abandon(w, p, call, LN_CODE_TOO_LARGE);
}

/* Answers the calls that were not answered in time; gives rested IDs back. */
void call_expire(struct worker *w)
{
	struct call *call;

	while ((call = TAILQ_FIRST(&w->late)) && w->now >= call->due_ns + REST_NS) {
		TAILQ_REMOVE(&w->late, call, order);
		TAILQ_INSERT_TAIL(&w->idle, call, order);
	}
	for (unsigned int i = 0; i < host.service_count; i++) {
		while ((call = TAILQ_FIRST(&w->waiting[i])) && w->now >= call->due_ns) {
			struct packet *p = server_spare(w);

			end(w, call, &w->late);
			rpc_abandon(w, p, call, LN_CODE_TIMEOUT);
			server_send(w, p);
		}
	}
}

/* When the next call is due; UINT64_MAX for none. */
uint64_t call_next_due(struct worker *w)
{
	uint64_t due = UINT64_MAX;
	struct call *call;

	for (unsigned int i = 0; i < host.service_count; i++) {
		call = TAILQ_FIRST(&w->waiting[i]);
		if (call && call->due_ns < due)
			due = call->due_ns;
	}
	return due;
}

unsigned int call_active(void)
{
	return atomic_load(&active);
}
