// SPDX-License-Identifier: Apache-2.0
/* Messages that ikernels send by rings. api/ikernel/wire.go says what a ring has where. */
#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "ikernel.h"

#define CACHE_LINE 64 /* rings that several threads read share none */

struct lambdanic_ring {
	_Alignas(CACHE_LINE) int fd;
	int fault; /* descriptor where the ikernel's fault is told; negative if nobody waits for the ring */
	bool polled;
	struct mapping memory;
	uint64_t *read; /* up to where the application has read, which it writes */
	const uint64_t *written; /* up to where there are messages */
	uint64_t mask;
	uint64_t released; /* what *read is */
	uint64_t at; /* what *read becomes when the message in use is released */
};

struct request {
	uint32_t count, size, flags;
};

_Static_assert(sizeof(struct request) == LN_IKERNEL_RINGS_LEN, "a request for rings is that of the protocol");

static bool open_ring(struct lambdanic_ring *r, const struct lambdanic_rings *rings)
{
	if (!mapping_open(&r->memory, r->fd, rings->size, PROT_READ | PROT_WRITE, PROT_READ))
		return false;
	r->polled = rings->polled;
	r->read = r->memory.first;
	r->written = r->memory.second;
	r->mask = rings->size - 1;
	return true;
}

void rings_close(struct lambdanic_ring *rings, size_t count)
{
	if (!rings)
		return;
	for (size_t i = 0; i < count; i++) {
		mapping_close(&rings[i].memory);
		close(rings[i].fd);
	}
	free(rings);
}

/* Takes the answer's descriptors. */
static struct lambdanic_ring *open_rings(const struct answer *a, const struct lambdanic_rings *rings)
{
	size_t count = a->descriptors_count;
	struct lambdanic_ring *all = aligned_alloc(CACHE_LINE, count * sizeof(*all));
	int err;

	if (!all) {
		ikernel_close_descriptors(a);
		return NULL;
	}
	memset(all, 0, count * sizeof(*all));
	for (size_t i = 0; i < count; i++)
		all[i].fd = a->descriptors[i];
	for (size_t i = 0; i < count; i++)
		if (!open_ring(&all[i], rings)) {
			err = errno;
			rings_close(all, count);
			errno = err;
			return NULL;
		}
	return all;
}

int lambdanic_rings_open(struct lambdanic_ikernel *ikernel, const struct lambdanic_rings *rings,
			 struct lambdanic_ring **ring)
{
	struct request request;
	struct answer a;
	int err;

	if (!ikernel || !rings || !ring)
		return LAMBDANIC_BAD_ARGUMENT;
	request = (struct request){ rings->count, rings->size, rings->polled ? LN_IKERNEL_RINGS_POLLED : 0 };
	err = ikernel_exchange(ikernel->all, (struct head){ LN_IKERNEL_OPERATION_RINGS, ikernel->number }, &request,
			       sizeof(request), -1, &a);
	if (err)
		return err;
	if (!a.descriptors_count || a.descriptors_count != rings->count)
		return ikernel_bad_answer(&a);
	ikernel->rings = open_rings(&a, rings);
	if (!ikernel->rings)
		return LAMBDANIC_SYSTEM;
	ikernel->rings_count = rings->count;
	if (!rings->polled) {
		err = ikernel_watch(ikernel);
		if (err)
			return err;
	}
	for (size_t i = 0; i < ikernel->rings_count; i++) {
		ikernel->rings[i].fault = rings->polled ? -1 : ikernel->fault;
		ring[i] = &ikernel->rings[i];
	}
	return LAMBDANIC_OK;
}

int lambdanic_rings_count(struct lambdanic_ikernel *ikernel, struct lambdanic_ring_counts *counts, size_t n)
{
	struct answer a;
	size_t given;
	int err;

	if (!ikernel || !counts)
		return LAMBDANIC_BAD_ARGUMENT;
	err = ikernel_exchange(ikernel->all, (struct head){ LN_IKERNEL_OPERATION_RING_COUNTS, ikernel->number }, NULL,
			       0, -1, &a);
	if (err)
		return err;
	given = MIN(a.len / LN_IKERNEL_RING_COUNTS_LEN, LN_IKERNEL_MAX_RINGS);
	memset(counts, 0, n * sizeof(*counts));
	memcpy(counts, a.body.counts, MIN(n, given) * sizeof(*counts));
	return LAMBDANIC_OK;
}

/*
 * The store comes before all later loads: either next() sees a message, or the kernel sees that its reader has none and wakes it. Where
 * nothing is to be released, an earlier store did so.
 */
static void release(struct lambdanic_ring *r)
{
	if (r->released == r->at)
		return;
	r->released = r->at;
	__atomic_store_n(r->read, r->at, __ATOMIC_SEQ_CST);
}

static int next(struct lambdanic_ring *r, struct lambdanic_message *m)
{
	while (r->at != __atomic_load_n(r->written, __ATOMIC_SEQ_CST)) {
		const uint8_t *from = r->memory.bytes + (r->at & r->mask);
		uint32_t len = __atomic_load_n((const uint32_t *)(const void *)from, __ATOMIC_ACQUIRE);

		if (len & BPF_RINGBUF_BUSY_BIT)
			return 0;
		from += BPF_RINGBUF_HDR_SZ;
		r->at += (BPF_RINGBUF_HDR_SZ + (len & ~(uint32_t)BPF_RINGBUF_DISCARD_BIT) + 7) & ~UINT64_C(7);
		if (!(len & BPF_RINGBUF_DISCARD_BIT)) {
			*m = (struct lambdanic_message){
				.data = from + LN_IKERNEL_RING_HEAD_LEN,
				.len = len - LN_IKERNEL_RING_HEAD_LEN,
				.head = (const void *)from,
			};
			return 1;
		}
		release(r);
	}
	return 0;
}

int lambdanic_ring_poll(struct lambdanic_ring *ring, struct lambdanic_message *message)
{
	if (!ring || !message)
		return LAMBDANIC_BAD_ARGUMENT;
	release(ring);
	return next(ring, message);
}

int lambdanic_ring_read(struct lambdanic_ring *ring, struct lambdanic_message *message, int timeout_ms)
{
	struct lambdanic_fault fault;
	struct pollfd readable[2];
	int64_t end;
	int wait;

	if (!ring || !message || ring->polled)
		return LAMBDANIC_BAD_ARGUMENT;
	release(ring);
	if (next(ring, message))
		return 1;
	readable[0] = (struct pollfd){ ring->fd, POLLIN, 0 };
	readable[1] = (struct pollfd){ ring->fault, POLLIN, 0 };
	end = timeout_ms < 0 ? NEVER : now_ns() + timeout_ms * MS;
	do {
		wait = end == NEVER ? -1 : (int)(MAX(end - now_ns() + MS - 1, 0) / MS);
		if (poll(readable, 2, wait) < 0)
			return LAMBDANIC_SYSTEM;
		if (next(ring, message))
			return 1;
		if (readable[1].revents)
			return ikernel_look(ring->fault, &fault);
	} while (wait);
	return 0;
}

void lambdanic_ring_release(struct lambdanic_ring *ring)
{
	if (ring)
		release(ring);
}

int lambdanic_ring_fd(const struct lambdanic_ring *ring)
{
	return ring ? ring->fd : -1;
}

static socklen_t put_address(struct sockaddr_storage *to, bool is_ipv6, const uint8_t *address, uint16_t port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = port };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = port };

	if (is_ipv6) {
		memcpy(&six.sin6_addr, address, sizeof(six.sin6_addr));
		memcpy(to, &six, sizeof(six));
		return sizeof(six);
	}
	memcpy(&four.sin_addr, address, sizeof(four.sin_addr));
	memcpy(to, &four, sizeof(four));
	return sizeof(four);
}

socklen_t lambdanic_message_from(const struct lambdanic_message *message, struct sockaddr_storage *from)
{
	const struct lambdanic_message_head *h = message->head;

	return put_address(from, h->is_ipv6, h->from, h->from_port);
}

socklen_t lambdanic_message_to(const struct lambdanic_message *message, struct sockaddr_storage *to)
{
	const struct lambdanic_message_head *h = message->head;

	return put_address(to, h->is_ipv6, h->to, h->to_port);
}
