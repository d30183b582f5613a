// SPDX-License-Identifier: Apache-2.0
/*
 * Messages of several packets: reordering and duplicate suppression, as in the NIC program's bpf/messages/message.h. The
 * number of records is fixed. A message in progress is never evicted; answered ones make room, the oldest first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "messages/grant.h"
#include "messages/keep.h"
#include "host.h"

TAILQ_HEAD(message_list, message);

static struct {
	pthread_mutex_t lock;
	struct message *records;
	struct message **chains; /* hash table, as many as records */
	struct message_list idle, active, done;
	uint64_t secret[2];
	unsigned int in_progress;
	struct ln_grants grants;
} messages = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *reserve(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

int message_init(void)
{
	size_t stride = host.mode == LN_MODE_ASSEMBLE ? (size_t)host.message_max + LAMBDA_WINDOW : 0;
	size_t most = host.message_max < LN_MAX_FRAGMENTS ? host.message_max : LN_MAX_FRAGMENTS;
	size_t words = most / 64 + 1;
	uint64_t *bitmaps;
	uint8_t *buffers = NULL;

	TAILQ_INIT(&messages.idle);
	TAILQ_INIT(&messages.active);
	TAILQ_INIT(&messages.done);
	if (host.mode == LN_MODE_PACKET)
		return 0;
	if (getrandom(messages.secret, sizeof(messages.secret), 0) != sizeof(messages.secret))
		return -errno;
	messages.records = calloc(host.in_flight, sizeof(*messages.records));
	messages.chains = calloc(host.in_flight, sizeof(*messages.chains));
	/* The first packet that needs a page allocates it; a whole buffer's pages come at its first run. */
	bitmaps = reserve(host.in_flight * words * sizeof(*bitmaps));
	if (stride)
		buffers = reserve(host.in_flight * stride);
	if (!messages.records || !messages.chains || !bitmaps || (stride && !buffers))
		return -ENOMEM;
	for (uint32_t i = 0; i < host.in_flight; i++) {
		struct message *m = &messages.records[i];

		m->arrived = bitmaps + i * words;
		m->buffer = stride ? buffers + i * stride : NULL;
		TAILQ_INSERT_TAIL(&messages.idle, m, order);
	}
	return 0;
}

struct key {
	uint8_t addr[16];
	uint16_t port;
	uint64_t request;
};

static struct key key_of(const struct flow *flow)
{
	struct key key = { .request = flow->rpc.request };

	if (flow->peer.sa.sa_family == AF_INET6) {
		memcpy(key.addr, &flow->peer.in6.sin6_addr, 16);
		key.port = flow->peer.in6.sin6_port;
	} else {
		memcpy(key.addr, &flow->peer.in.sin_addr, 4);
		key.port = flow->peer.in.sin_port;
	}
	return key;
}

static struct message **chain_of(const uint8_t *addr, uint16_t port, uint64_t request)
{
	uint64_t a[2], h = messages.secret[0] ^ request;

	memcpy(a, addr, sizeof(a));
	/* The 64-bit finalizer of MurmurHash3, keyed: without the secret, nobody can aim at one chain. */
	h = (h ^ (h >> 33) ^ a[0]) * 0xff51afd7ed558ccdULL;
	h = (h ^ (h >> 33) ^ a[1] ^ messages.secret[1]) * 0xc4ceb9fe1a85ec53ULL;
	h = (h ^ (h >> 33) ^ port) * 0xff51afd7ed558ccdULL;
	return &messages.chains[(h >> 33) & (host.in_flight - 1)];
}

static struct message *lookup(const struct key *key)
{
	struct message *m = *chain_of(key->addr, key->port, key->request);

	while (m && (m->request != key->request || m->port != key->port || memcmp(m->addr, key->addr, 16)))
		m = m->chain;
	return m;
}

static struct message_list *list_of(const struct message *m)
{
	return m->state == LN_MESSAGE_DONE ? &messages.done : &messages.active;
}

static void drop(struct message *m)
{
	struct message **at = chain_of(m->addr, m->port, m->request);

	while (*at != m)
		at = &(*at)->chain;
	*at = m->chain;
	TAILQ_REMOVE(list_of(m), m, order);
	if (m->state != LN_MESSAGE_DONE)
		messages.in_progress--;
	m->state = LN_MESSAGE_FREE;
	atomic_fetch_sub(&m->revision->users, 1);
	TAILQ_INSERT_TAIL(&messages.idle, m, order);
}

static bool expired(const struct message *m, uint64_t now)
{
	return !m->users && now > m->touched_ns && now - m->touched_ns >= m->patience_ns;
}

static struct message *claim(uint64_t now)
{
	struct message *m = TAILQ_FIRST(&messages.idle);

	if (m)
		return m;
	/* A message that is only kept to recognise late packets goes first. */
	TAILQ_FOREACH(m, &messages.done, order)
	{
		if (!m->users && m->released)
			goto evict;
	}
	TAILQ_FOREACH(m, &messages.done, order)
	{
		if (!m->users && ln_forgettable(m->once, m->released, m->touched_ns, now))
			goto evict;
	}
	TAILQ_FOREACH(m, &messages.active, order)
	{
		if (expired(m, now))
			goto evict;
	}
	return NULL;
evict:
	drop(m);
	return m;
}

static struct message *begin(const struct key *key, const struct packet *p, uint64_t now)
{
	struct message **chain = chain_of(key->addr, key->port, key->request);
	struct message *m = atomic_load(&host.draining) ? NULL : claim(now);

	if (!m)
		return NULL;
	TAILQ_REMOVE(&messages.idle, m, order);
	memcpy(m->addr, key->addr, sizeof(m->addr));
	m->port = key->port;
	m->request = key->request;
	m->revision = host.current;
	atomic_fetch_add(&m->revision->users, 1);
	m->count = p->part.count;
	m->message_len = p->part.message_len;
	m->fragment = 0;
	m->received = 0;
	m->reply_len = 0;
	m->users = 0;
	m->doomed = false;
	m->once = wants_once(&p->flow);
	m->released = false;
	m->error = 0;
	m->state = LN_MESSAGE_PARTIAL;
	memset(m->arrived, 0, ((m->count + 63) / 64) * sizeof(*m->arrived));
	m->chain = *chain;
	*chain = m;
	TAILQ_INSERT_TAIL(&messages.active, m, order);
	messages.in_progress++;
	return m;
}

static void touch(struct message *m, const struct packet *p, uint64_t now)
{
	m->touched_ns = now;
	m->patience_ns = ln_patience(m->state, be32toh(p->flow.rpc.deadline_us), host.message_timeout_ms);
	m->users++;
	TAILQ_REMOVE(list_of(m), m, order);
	TAILQ_INSERT_TAIL(list_of(m), m, order);
}

/*
 * Looks the packet's message up, or begins it. Of several workers that come with the same packet, one gets
 * ARRIVAL_NEW. *found is held until message_release().
 */
enum arrival message_arrive(const struct packet *p, uint64_t now, struct message **found)
{
	uint32_t index = p->part.index;
	struct key key = key_of(&p->flow);
	enum arrival arrival = ARRIVAL_BUSY;
	struct message *m;

	pthread_mutex_lock(&messages.lock);
	m = lookup(&key);
	if (m && expired(m, now)) {
		drop(m);
		m = NULL;
	}
	/* Too large to begin. In a message in progress, a packet that claims this size contradicts the others instead. */
	if (!m && p->part.message_len > host.message_max) {
		arrival = ARRIVAL_TOO_LARGE;
		goto out;
	}
	if (!m)
		m = begin(&key, p, now);
	if (!m)
		goto out;
	if (!ln_place_fits(&p->part, m->count, m->message_len, &m->fragment)) {
		arrival = ARRIVAL_MALFORMED;
		m = NULL;
		goto out;
	}
	touch(m, p, now);
	if (m->released) {
		arrival = ARRIVAL_RUNNING;
	} else if (m->state == LN_MESSAGE_DONE) {
		arrival = ARRIVAL_DONE;
	} else if (m->state == LN_MESSAGE_RUNNING) {
		arrival = ARRIVAL_RUNNING;
	} else if (m->arrived[index / 64] >> (index % 64) & 1) {
		arrival = ARRIVAL_AGAIN;
	} else {
		m->arrived[index / 64] |= 1ULL << (index % 64);
		arrival = ARRIVAL_NEW;
	}
out:
	pthread_mutex_unlock(&messages.lock);
	*found = m;
	return arrival;
}

/* The answered message that a pull names, held until message_release(). */
struct message *message_find(const struct packet *p, uint64_t now)
{
	struct key key = key_of(&p->flow);
	struct message *m;

	pthread_mutex_lock(&messages.lock);
	m = lookup(&key);
	if (m && m->state == LN_MESSAGE_DONE && !m->released && !expired(m, now))
		touch(m, p, now);
	else
		m = NULL;
	pthread_mutex_unlock(&messages.lock);
	return m;
}

/* Forgets the message that a packet names once no worker holds it: its client will not ask again. */
void message_finish(const struct packet *p)
{
	struct key key = key_of(&p->flow);
	struct message *m;

	pthread_mutex_lock(&messages.lock);
	m = lookup(&key);
	if (m && m->once && m->state == LN_MESSAGE_DONE)
		m->released = true;
	else if (m && m->users)
		m->doomed = true;
	else if (m)
		drop(m);
	pthread_mutex_unlock(&messages.lock);
}

/* Notes that a packet was taken in; true for the one that completes its message. */
bool message_take(struct message *m)
{
	bool whole;

	pthread_mutex_lock(&messages.lock);
	m->received++;
	whole = m->received == m->count;
	if (whole)
		m->state = LN_MESSAGE_RUNNING;
	pthread_mutex_unlock(&messages.lock);
	return whole;
}

/* Undoes the arrival of a packet on which the lambda failed, so that a resend runs it anew. */
void message_untake(struct message *m, uint32_t index)
{
	pthread_mutex_lock(&messages.lock);
	m->arrived[index / 64] &= ~(1ULL << (index % 64));
	pthread_mutex_unlock(&messages.lock);
}

uint64_t message_bitmap(const struct message *m, uint32_t index)
{
	uint64_t word;

	pthread_mutex_lock(&messages.lock);
	word = m->arrived[index / 64];
	pthread_mutex_unlock(&messages.lock);
	return word;
}

/* How many packets of the message its client may have sent by now, once it knows this bitmap. */
uint32_t message_grant(const struct message *m, uint32_t index, uint64_t bitmap, uint64_t now)
{
	uint32_t rank;

	if (!bitmap)
		return 0;
	pthread_mutex_lock(&messages.lock);
	rank = ln_grant_rank(&messages.grants, 1 + message_index(m), m->count - m->received, now);
	pthread_mutex_unlock(&messages.lock);
	/* Beyond the last packet in the bitmap, so that the client has more to send whatever the bitmap confirms. */
	return (index & ~63U) + 64 - __builtin_clzll(bitmap) + ln_grant_window(rank);
}

/* Ends a message's run: from now on its answer is remembered. */
void message_done(struct message *m)
{
	pthread_mutex_lock(&messages.lock);
	TAILQ_REMOVE(&messages.active, m, order);
	m->state = LN_MESSAGE_DONE;
	TAILQ_INSERT_TAIL(&messages.done, m, order);
	messages.in_progress--;
	pthread_mutex_unlock(&messages.lock);
}

void message_release(struct message *m)
{
	pthread_mutex_lock(&messages.lock);
	if (!--m->users && m->doomed)
		drop(m);
	pthread_mutex_unlock(&messages.lock);
}

/* Releases the message, and forgets it once no other worker holds it. */
void message_forget(struct message *m)
{
	pthread_mutex_lock(&messages.lock);
	m->doomed = true;
	if (!--m->users)
		drop(m);
	pthread_mutex_unlock(&messages.lock);
}

/* Forgets what timed out, so that old revisions drain. Both lists are in the order of their last packets. */
void message_expire(uint64_t now)
{
	struct message_list *lists[] = { &messages.active, &messages.done };
	struct message *m;

	pthread_mutex_lock(&messages.lock);
	for (int i = 0; i < 2; i++) {
		while ((m = TAILQ_FIRST(lists[i])) && expired(m, now))
			drop(m);
	}
	pthread_mutex_unlock(&messages.lock);
}

static unsigned int requests_of(const struct message_list *list, uint32_t *requests, unsigned int most)
{
	const struct message *m;
	unsigned int n = 0;

	TAILQ_FOREACH_REVERSE(m, list, message_list, order)
	{
		if (n == most)
			break;
		requests[n++] = be64toh(m->request);
	}
	return n;
}

/* The lower halves of the IDs of at most most messages: those in progress, then answered ones, the newest first. */
unsigned int message_requests(uint32_t *requests, unsigned int most)
{
	unsigned int n;

	if (host.mode == LN_MODE_PACKET)
		return 0;
	pthread_mutex_lock(&messages.lock);
	n = requests_of(&messages.active, requests, most);
	n += requests_of(&messages.done, requests + n, most - n);
	pthread_mutex_unlock(&messages.lock);
	return n;
}

uint32_t message_index(const struct message *m)
{
	return m - messages.records;
}

unsigned int message_active(void)
{
	unsigned int n;

	pthread_mutex_lock(&messages.lock);
	n = messages.in_progress;
	pthread_mutex_unlock(&messages.lock);
	return n;
}
