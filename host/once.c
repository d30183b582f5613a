// SPDX-License-Identifier: Apache-2.0
/*
 * Requests of one packet that are executed at most once, as in the NIC program's bpf/once/once.h: the same table, the same rules. Every
 * answer leaves by reply.c, which has it stored here.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "host.h"
#include "once/once_table.h"

struct bucket {
	struct ln_once way[LN_ONCE_WAYS];
	uint8_t answer[LN_ONCE_WAYS][LN_ONCE_ANSWER];
};

static struct {
	pthread_mutex_t lock;
	struct bucket *buckets;
	uint64_t secret;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

int once_init(void)
{
	/* The first request that needs a page allocates it. */
	table.buckets = mmap(NULL, LN_ONCE_BUCKETS * sizeof(*table.buckets), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table.buckets == MAP_FAILED)
		return -errno;
	if (getrandom(&table.secret, sizeof(table.secret), 0) != sizeof(table.secret))
		return -errno;
	return 0;
}

static struct ln_once_key key_of(const struct flow *flow)
{
	struct ln_once_key key = { .request = flow->rpc.request, .workload = host.workload };

	if (flow->peer.sa.sa_family == AF_INET6) {
		memcpy(key.addr, &flow->peer.in6.sin6_addr, 16);
		key.port = flow->peer.in6.sin6_port;
	} else {
		memcpy(key.addr, &flow->peer.in.sin_addr, 4);
		key.port = flow->peer.in.sin_port;
	}
	return key;
}

static uint32_t number_of(const struct ln_once_key *key)
{
	return ln_once_hash(key, table.secret) & (LN_ONCE_BUCKETS - 1);
}

/* Puts a remembered answer into p, where it fits. */
static enum once_arrival recall(struct packet *p, const struct ln_once *r, const uint8_t *answer, struct ln_answer *a)
{
	*a = (struct ln_answer){
		.type = r->type,
		.code = r->code,
		.length = r->length,
		.revision = r->revision,
		.count = 1,
		.message_len = r->message_len,
	};
	if (r->length > p->flow.room)
		return ONCE_TOO_LARGE;
	memcpy(p->base, answer, r->length);
	return ONCE_ANSWERED;
}

/* Looks a request up, or begins it. */
enum once_arrival once_arrive(uint64_t now, struct packet *p, struct ln_answer *a)
{
	struct ln_once_key key = key_of(&p->flow);
	uint32_t number = number_of(&key), way;
	struct bucket *b = &table.buckets[number];
	enum once_arrival arrival = ONCE_UNDERWAY;

	pthread_mutex_lock(&table.lock);
	way = ln_once_find(b->way, &key, now);
	if (way < LN_ONCE_WAYS) {
		b->way[way].expires_ns = now + LN_ONCE_NS;
		if (b->way[way].state == LN_ONCE_DONE)
			arrival = recall(p, &b->way[way], b->answer[way], a);
	} else if ((way = ln_once_choose(b->way, key.workload, now)) < LN_ONCE_WAYS) {
		ln_once_take(&b->way[way], &key, now);
		p->flow.once = 1 + number * LN_ONCE_WAYS + way;
		arrival = ONCE_NEW;
	} else {
		arrival = ONCE_FULL;
	}
	pthread_mutex_unlock(&table.lock);
	return arrival;
}

/* Remembers the answer to a request that once_arrive() began. */
void once_settle(const struct flow *flow, const uint8_t *at, const struct ln_answer *a)
{
	struct ln_once_key key = key_of(flow);
	uint32_t number = flow->once - 1, way = number % LN_ONCE_WAYS;
	struct bucket *b = &table.buckets[number / LN_ONCE_WAYS];
	struct ln_once *r = &b->way[way];

	pthread_mutex_lock(&table.lock);
	/* The run may have taken longer than the request is remembered. */
	if (ln_once_is(r, &key) && r->state == LN_ONCE_RUNNING) {
		r->type = a->type;
		r->code = a->code;
		r->revision = a->revision;
		r->message_len = a->message_len;
		r->length = a->length;
		memcpy(b->answer[way], at, a->length);
		r->state = LN_ONCE_DONE;
	}
	pthread_mutex_unlock(&table.lock);
}

/* Notes that nobody waits for the answer any more: the client has it, or (running) the lambda gave none. */
void once_release(const struct worker *w, const struct flow *flow, bool running)
{
	struct ln_once_key key = key_of(flow);
	struct bucket *b = &table.buckets[number_of(&key)];
	uint32_t way;

	pthread_mutex_lock(&table.lock);
	way = ln_once_find(b->way, &key, w->now);
	if (way < LN_ONCE_WAYS && (running || b->way[way].state == LN_ONCE_DONE))
		b->way[way].state = LN_ONCE_RELEASED;
	pthread_mutex_unlock(&table.lock);
}
