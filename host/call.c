// SPDX-License-Identifier: Apache-2.0
/*
 * External calls: a lambda's request to a service over UDP. With memcached, the frame header's 16-bit request ID (memcached's
 * doc/protocol.txt) is the index of the call's record; each worker has its own sockets and so its own IDs. A call of protocol
 * raw has a socket to itself, whose port the kernel chooses at random. All sockets are connected, so that the kernel delivers only
 * answers from the server that was asked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "host.h"

struct memcached_frame {
	uint16_t request;
	uint16_t sequence;
	uint16_t total;
	uint16_t reserved;
};

/*
 * How long a timed-out call's ID is not reused, so that a late answer matches no call. The NIC program tells uses
 * of an ID apart by port, and needs less.
 */
#define REST_NS 1000000000ULL

static atomic_uint active, raw_active, retained;

/* Puts the records in a random order, since their indices are request IDs. */
static int shuffle(struct worker *w)
{
	static uint32_t order[LN_MAX_CALLS], random[LN_MAX_CALLS];

	for (size_t got = 0; got < sizeof(random);) {
		ssize_t n = getrandom((uint8_t *)random + got, sizeof(random) - got, 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		got += n > 0 ? n : 0;
	}
	for (uint32_t i = 0; i < LN_MAX_CALLS; i++) {
		uint32_t j = (uint64_t)random[i] * (i + 1) >> 32;

		order[i] = order[j];
		order[j] = i;
	}
	for (uint32_t i = 0; i < LN_MAX_CALLS; i++)
		TAILQ_INSERT_TAIL(&w->idle, &w->calls[order[i]], order);
	return 0;
}

int call_init(struct worker *w)
{
	size_t size = LN_MAX_CALLS * sizeof(*w->calls);

	TAILQ_INIT(&w->idle);
	TAILQ_INIT(&w->late);
	w->raw_fd = -1;
	for (unsigned int i = 0; i < host.server_count; i++)
		w->server_fds[i] = -1;
	for (unsigned int i = 0; i < host.service_count; i++) {
		TAILQ_INIT(&w->waiting[i]);
		if (host.services[i].protocol == LN_PROTOCOL_RAW && w->raw_fd < 0) {
			w->raw_fd = epoll_create1(EPOLL_CLOEXEC);
			if (w->raw_fd < 0)
				return -errno;
		}
	}
	if (!host.service_count)
		return 0;
	w->calls = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->calls == MAP_FAILED)
		return -errno;
	return shuffle(w);
}

static int connect_to(unsigned int server)
{
	const union address *addr = &host.servers[server].addr;
	int fd = socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, &addr->sa, address_len(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The socket to a server, which all calls share. Opened on demand, as the route may come late. */
static int server_fd(struct worker *w, unsigned int server)
{
	int size = 4 << 20, fd = w->server_fds[server];

	if (fd >= 0)
		return fd;
	fd = connect_to(server);
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	w->server_fds[server] = fd;
	return fd;
}

/* A socket for one call. Returns an error code for the client, or 0. */
static int raw_fd(struct worker *w, struct call *call, unsigned int server)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = call };

	if (atomic_load(&raw_active) >= LN_MAX_RAW_CALLS)
		return LN_CODE_BUSY;
	call->fd = connect_to(server);
	if (call->fd < 0)
		return errno == EMFILE || errno == ENFILE ? LN_CODE_BUSY : LN_CODE_UNREACHABLE;
	if (epoll_ctl(w->raw_fd, EPOLL_CTL_ADD, call->fd, &event)) {
		close(call->fd);
		call->fd = -1;
		return LN_CODE_BUSY;
	}
	atomic_fetch_add(&raw_active, 1);
	return 0;
}

/* Keeps a request to be sent again. Without room for it, the call has one try. */
static void retain(struct call *call, const uint8_t *bytes, uint32_t len)
{
	if (atomic_fetch_add(&retained, 1) < LN_MAX_RETAINED)
		call->sent = malloc(sizeof(*call->sent) + len);
	if (!call->sent) {
		atomic_fetch_sub(&retained, 1);
		return;
	}
	call->sent->len = len;
	memcpy(call->sent->bytes, bytes, len);
}

static void start(struct worker *w, struct packet *p, struct revision *rev, struct call *call, unsigned int service)
{
	TAILQ_REMOVE(&w->idle, call, order);
	call->due_ns = w->now + host.services[service].timeout_ms * 1000000ULL;
	call->deadline_ns = p->flow.rpc.deadline_us ? w->now + be32toh(p->flow.rpc.deadline_us) * 1000ULL : UINT64_MAX;
	call->retries = host.services[service].retries;
	call->revision = rev;
	call->waiting = true;
	memcpy(call->cookie, w->req.match.cookie, sizeof(call->cookie));
	call->flow = p->flow;
	TAILQ_INSERT_TAIL(&w->waiting[service], call, order);
	atomic_fetch_add(&rev->users, 1);
	atomic_fetch_add(&active, 1);
}

/*
 * Sends the request that the lambda described to its service. The bytes are at at, with room for a header before them; NULL: the lambda
 * described bytes that are not its own. Returns 0 or an error code for the client.
 */
int call_begin(struct worker *w, struct packet *p, struct revision *rev, uint8_t *at)
{
	uint32_t service = w->req.service, len = w->req.out_len;
	struct memcached_frame frame = { .total = htobe16(1) };
	const struct service *svc = &host.services[service];
	struct call *call = TAILQ_FIRST(&w->idle);
	int code;

	if (service >= host.service_count || !at || (svc->id_len && len < svc->id_at + svc->id_len))
		return LN_CODE_LAMBDA_FAULT;
	if (!call || (atomic_load(&host.draining) && !atomic_load(&host.succeeded)))
		return LN_CODE_BUSY;
	call->server = svc->first + svc->shares[ln_share(w->req.key)];
	call->sent = NULL;
	call->fd = -1;
	if (svc->protocol == LN_PROTOCOL_RAW) {
		code = raw_fd(w, call, call->server);
		if (code)
			return code;
		p->out_fd = call->fd;
		(void)!getrandom(&call->id, sizeof(call->id), 0);
		memcpy(at + svc->id_at, &call->id, svc->id_len);
	} else {
		p->out_fd = server_fd(w, call->server);
		if (p->out_fd < 0)
			return LN_CODE_UNREACHABLE;
		at -= sizeof(frame);
		len += sizeof(frame);
		frame.request = htobe16(call - w->calls);
		memcpy(at, &frame, sizeof(frame));
	}
	start(w, p, rev, call, service);
	if (svc->retries)
		retain(call, at, len);
	p->out = at;
	p->out_len = len;
	p->to_service = true;
	return 0;
}

/* Takes a call out of flight. Its record keeps the client's data until the next call begins. */
static void end(struct worker *w, struct call *call, struct call_list *to)
{
	TAILQ_REMOVE(&w->waiting[host.servers[call->server].service], call, order);
	if (call->fd >= 0) {
		close(call->fd);
		atomic_fetch_sub(&raw_active, 1);
		to = &w->idle; /* its port is closed: no late answer can arrive */
	}
	if (call->sent) {
		free(call->sent);
		atomic_fetch_sub(&retained, 1);
	}
	TAILQ_INSERT_TAIL(to, call, order);
	call->waiting = false;
	atomic_fetch_sub(&call->revision->users, 1);
	atomic_fetch_sub(&active, 1);
}

/*
 * The call that a datagram of len bytes from memcached answers; NULL for none. The frame header is right before p->base. Sets *whole
 * if the datagram is the whole answer.
 */
const struct call *call_receive(struct worker *w, const struct packet *p, unsigned int server, uint32_t len,
				bool *whole)
{
	struct memcached_frame frame;
	struct call *call;

	if (len < sizeof(frame))
		return NULL;
	memcpy(&frame, p->base - sizeof(frame), sizeof(frame));
	call = &w->calls[be16toh(frame.request)];
	if (!call->waiting || call->fd >= 0 || call->server != server)
		return NULL;
	end(w, call, &w->idle);
	*whole = frame.total == htobe16(1);
	return call;
}

/* Whether a datagram of len bytes at p->base, which came to a call's own socket, answers the call. */
bool call_receive_raw(struct worker *w, const struct packet *p, struct call *call, uint32_t len)
{
	const struct service *svc = &host.services[host.servers[call->server].service];

	if (svc->id_len && (len < svc->id_at + svc->id_len || memcmp(p->base + svc->id_at, &call->id, svc->id_len)))
		return false;
	end(w, call, &w->idle);
	return true;
}

/* Sends a call's request again. If the kernel refuses it, it is lost, as on any network. */
static void again(struct worker *w, struct call *call, unsigned int service)
{
	int fd = call->fd >= 0 ? call->fd : server_fd(w, call->server);

	call->retries--;
	call->due_ns = w->now + host.services[service].timeout_ms * 1000000ULL;
	TAILQ_REMOVE(&w->waiting[service], call, order);
	TAILQ_INSERT_TAIL(&w->waiting[service], call, order);
	(void)!send(fd, call->sent->bytes, call->sent->len, MSG_DONTWAIT);
}

/* A call that was not answered in time, NULL for none. Sends calls again that have a try left; frees IDs that have rested. */
const struct call *call_overdue(struct worker *w)
{
	struct call *call;

	while ((call = TAILQ_FIRST(&w->late)) && w->now >= call->due_ns + REST_NS) {
		TAILQ_REMOVE(&w->late, call, order);
		TAILQ_INSERT_TAIL(&w->idle, call, order);
	}
	for (unsigned int i = 0; i < host.service_count; i++) {
		while ((call = TAILQ_FIRST(&w->waiting[i])) && w->now >= call->due_ns) {
			if (!call->retries || !call->sent || w->now > call->deadline_ns) {
				end(w, call, &w->late);
				return call;
			}
			again(w, call, i);
		}
	}
	return NULL;
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
