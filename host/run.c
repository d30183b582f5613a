// SPDX-License-Identifier: Apache-2.0
/* One run of the lambda: the description of its request, and the memory it works on. */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "host.h"

/*
 * Describes a request to the lambda, with an empty reply and, as long as the message has no record, a record that does not exist.
 * A pull asks for the window that its index and packet size name.
 */
void run_describe(struct worker *w, const struct packet *p, const struct revision *rev, uint32_t event)
{
	const struct ln_rpc *rpc = &p->flow.rpc;
	struct lambda_match *match = &w->req.match;
	bool pull = rpc->type == LN_TYPE_PULL;

	*match = (struct lambda_match){
		.event = event,
		.workload = host.workload,
		.revision = rev->number,
		.method = be32toh(rpc->method),
		.request = be64toh(rpc->request),
		.message_len = pull ? be16toh(rpc->length) : be32toh(rpc->message_len),
		.offset = p->offset,
		.payload_len = be16toh(rpc->length),
		.room = p->flow.room,
		.window = pull ? be32toh(rpc->index) * be32toh(rpc->message_len) : 0,
		.window_len = pull ? be32toh(rpc->message_len) : p->flow.room,
		.record = UINT32_MAX,
	};
	w->req.out_off = 0;
	w->req.out_len = 0;
	w->req.out_total = 0;
	w->req.out_status = LN_STATUS_OK;
}

static uint64_t clock_fine(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void sample(struct ln_stats *stats, uint64_t ns)
{
	stats->samples++;
	stats->sampled_ns += ns;
	stats->hist[(63 - __builtin_clzll(ns | 1)) & (LN_HIST_BUCKETS - 1)]++;
}

/* Runs the lambda, and measures every LN_SAMPLE_EVERYth run. */
static int run_measured(struct worker *w, struct revision *rev, struct lambda_headers *headers)
{
	uint64_t began;
	int verdict;

	if (++w->tick & (LN_SAMPLE_EVERY - 1))
		return guard_run(&w->guard, rev->entry, headers);
	began = clock_fine();
	verdict = guard_run(&w->guard, rev->entry, headers);
	sample(reply_stats(w, rev), clock_fine() - began);
	return verdict;
}

/* Makes the thread's heap before its first run of the revision, so that this time does not count as the run's. */
static void give_heap(const struct worker *w, struct revision *rev)
{
	size_t size;

	if (!rev->heap || rev->heaps[w->id])
		return;
	rev->heaps[w->id] = rev->heap(&size);
	if (rev->heaps[w->id] && (!host.memory || size <= host.memory))
		populate(rev->heaps[w->id], size);
}

int run_whole(struct worker *w, const struct packet *p, struct revision *rev, struct lambda_headers *headers)
{
	int verdict;

	give_heap(w, rev);
	headers->req = &w->req;
	w->guard.asks = &p->flow;
	verdict = run_measured(w, rev, headers);
	if (w->guard.fault) {
		atomic_store(&rev->fault, w->guard.fault);
		if (w->guard.fault == SIGURG)
			w->endless = p->flow;
		if (verdict == LN_VERDICT_OF(LN_FAULT_BOUNDS) && rev->refused && rev->refused())
			verdict = LN_VERDICT_OF(LN_FAULT_MEMORY);
	}
	return verdict;
}

/*
 * Runs the lambda on the datagram itself. If the lambda may call a service, it gets room to add to the payload.
 */
int run_packet(struct worker *w, struct packet *p, struct revision *rev)
{
	struct lambda_headers headers;
	int verdict;

	if (host.service_count && p->size < LN_RPC_MAX_PAYLOAD)
		p->base = memcpy(p->spare + HEAD_ROOM, p->base, p->size);
	headers.base = p->base;
	headers.start = p->base - LN_PREFIX;
	headers.end = p->base + p->size;
	headers.limit = headers.end;
	if (p->base == p->spare + HEAD_ROOM)
		headers.limit = p->base + LN_RPC_MAX_PAYLOAD;
	verdict = run_whole(w, p, rev, &headers);
	if (headers.end > p->base && headers.end <= headers.limit)
		p->size = headers.end - p->base;
	return verdict;
}
