// SPDX-License-Identifier: Apache-2.0
/* λ-RPC's server side (docs/protocol.md): what becomes of one datagram. */
#include <string.h>
#include <time.h>

#include "host.h"

struct answer {
	uint8_t type;
	uint8_t code;
	uint16_t length;
	uint32_t revision;
	uint32_t index;
	uint32_t count;
	uint32_t message_len;
};

static uint32_t min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Packets in a message of len bytes at size each. */
static uint32_t packets(uint32_t len, uint32_t size)
{
	return len <= size ? 1 : ((uint64_t)len + size - 1) / size;
}

/* Makes the packet at hand one that we send: the header goes right before the answer's bytes. */
static void answer(struct packet *p, uint8_t *at, const struct answer *a)
{
	const struct ln_rpc *req = &p->flow.rpc;
	struct ln_rpc rpc = {
		.magic = htobe16(LN_RPC_MAGIC),
		.version = LN_RPC_VERSION,
		.type = a->type,
		.code = a->code,
		.length = htobe16(a->length),
		.workload = req->workload,
		.revision = htobe32(a->revision),
		.request = req->request,
		.index = htobe32(a->index),
		.count = htobe32(a->count),
		.message_len = htobe32(a->message_len),
		.method = req->method,
		.client = req->client,
		.sequence = req->sequence,
	};

	p->out = at - HEADER;
	memcpy(p->out, &rpc, HEADER);
	p->out_len = HEADER + a->length;
	p->out_fd = p->flow.fd;
	p->to_service = false;
}

static void rpc_error(struct packet *p, uint8_t code, uint32_t needed)
{
	struct answer a = { .type = LN_TYPE_ERROR, .code = code, .count = 1, .message_len = needed };

	answer(p, p->base, &a);
}

static struct ln_stats *rpc_stats(struct worker *w, struct revision *rev)
{
	return &rev->stats[w->id];
}

static void refuse(struct worker *w, struct packet *p, struct revision *rev, uint8_t code, uint32_t needed)
{
	rpc_stats(w, rev)->errors++;
	if (code == LN_CODE_LAMBDA_FAULT)
		rpc_stats(w, rev)->faults++;
	rpc_error(p, code, needed);
}

static void respond(struct worker *w, struct packet *p, struct revision *rev, uint8_t *at, const struct answer *a)
{
	struct ln_stats *stats = rpc_stats(w, rev);

	stats->replies++;
	stats->bytes_out += a->length;
	answer(p, at, a);
}

/* Acknowledges the packet at hand, if its sender wants that, with a bitmap of those around it. */
static void acknowledge(struct packet *p, struct message *m)
{
	uint32_t index = be32toh(p->flow.rpc.index);
	uint64_t bitmap = htobe64(message_bitmap(m, index));
	struct answer a = {
		.type = LN_TYPE_ACK,
		.length = sizeof(bitmap),
		.revision = m->revision->number,
		.index = index,
		.count = m->count,
		.message_len = m->message_len,
	};

	if (!(p->flow.rpc.flags & LN_FLAG_ACK_WANTED))
		return;
	if (p->flow.room < sizeof(bitmap)) /* no amplification, not even by eight bytes */
		a.length = 0;
	else
		memcpy(p->base, &bitmap, sizeof(bitmap));
	answer(p, p->base, &a);
}

/*
 * Tells the lambda about its request. Without a record of its message, it is told one that no lambda has. A pull asks for
 * the window that its index and packet size name.
 */
static void describe(struct worker *w, const struct packet *p, const struct revision *rev, uint32_t event)
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
}

static int run(struct worker *w, struct revision *rev, struct lambda_headers *headers)
{
	headers->req = &w->req;
	w->req.out_off = 0;
	w->req.out_len = 0;
	w->req.out_total = 0;
	w->req.out_status = LN_STATUS_OK;
	return guard_run(w, rev->entry, headers);
}

/* Runs the lambda on the datagram itself. */
static int run_packet(struct worker *w, struct packet *p, struct revision *rev)
{
	struct lambda_headers headers = { .base = p->base, .start = p->base - PREFIX, .end = p->base + p->size };

	return run(w, rev, &headers);
}

/*
 * Where the len bytes at off are, with room for a header before them; NULL if they are not for the lambda to give. What starts before
 * the payload would run into the packet before it, and what goes beyond its end, where the NIC program adds zeros, into the
 * packet behind it: these move.
 */
uint8_t *rpc_claim(struct packet *p, int32_t off, uint32_t len)
{
	uint8_t *moved = p->spare + HEAD_ROOM;
	int32_t size = p->size;
	uint32_t have;

	if (off < -PREFIX || off > size || len > LN_RPC_MAX_PAYLOAD)
		return NULL;
	have = min(len, size - off);
	if (off >= 0 && have == len)
		return p->base + off;
	memcpy(moved, p->base + off, have);
	memset(moved + have, 0, len - have);
	return moved;
}

/* Which packet of how many the reply at hand is; false where packets can carry none of it. */
static bool number(const struct worker *w, const struct packet *p, struct answer *a)
{
	const struct lambda_match *match = &w->req.match;
	uint32_t step = match->window_len, count = be32toh(p->flow.rpc.count);

	if (match->event == LAMBDA_FRAGMENT && count != 1) {
		a->index = be32toh(p->flow.rpc.index);
		a->count = count;
	} else if (a->message_len > a->length || match->window) {
		if (!step)
			return false;
		a->index = match->window / step;
		a->count = (a->message_len - 1) / step + 1;
	}
	return true;
}

/* Sends a reply that the lambda left in the datagram. */
static void forward(struct worker *w, struct packet *p, struct revision *rev)
{
	uint32_t len = w->req.out_len, total = w->req.out_total;
	struct answer a = {
		.type = LN_TYPE_RESPONSE,
		.code = w->req.out_status,
		.length = len,
		.revision = rev->number,
		.count = 1,
		.message_len = total,
	};
	uint8_t *at;

	if (len > p->flow.room) {
		refuse(w, p, rev, LN_CODE_TOO_LARGE, len > LN_RPC_MAX_PAYLOAD ? 0 : len);
		return;
	}
	if (!number(w, p, &a)) {
		refuse(w, p, rev, LN_CODE_TOO_LARGE, total);
		return;
	}
	at = rpc_claim(p, w->req.out_off, len);
	if (!at) {
		refuse(w, p, rev, LN_CODE_LAMBDA_FAULT, 0);
		return;
	}
	respond(w, p, rev, at, &a);
}

/* What the lambda's verdict on a datagram means, where there is no message to keep track of. */
static void conclude(struct worker *w, struct packet *p, struct revision *rev, int verdict)
{
	int code;

	switch (verdict) {
	case LN_VERDICT_DROP:
		rpc_stats(w, rev)->drops++;
		break;
	case LN_VERDICT_FORWARD:
		forward(w, p, rev);
		break;
	case LN_VERDICT_CALL:
		code = call_begin(w, p, rev);
		if (code)
			refuse(w, p, rev, code, 0);
		else
			rpc_stats(w, rev)->calls++;
		break;
	default:
		refuse(w, p, rev, LN_CODE_LAMBDA_FAULT, 0);
	}
}

/* A request or pull that needs no record: the packet is all there is. */
static void single(struct worker *w, struct packet *p, struct revision *rev)
{
	bool stream = host.mode == LN_MODE_STREAM;
	int verdict;

	describe(w, p, rev, stream ? LAMBDA_FRAGMENT : LAMBDA_REQUEST);
	verdict = run_packet(w, p, rev);
	if (stream && verdict == LN_VERDICT_KEEP) {
		w->req.match.event = LAMBDA_COMPLETE;
		verdict = run_packet(w, p, rev);
	}
	conclude(w, p, rev, verdict);
}

/* Mode stream: every packet was taken in; the lambda answers the message in the one that made it whole. */
static void stream_complete(struct worker *w, struct packet *p, struct message *m, bool repeat)
{
	int verdict;

	w->req.match.event = LAMBDA_COMPLETE;
	w->req.match.repeat = repeat;
	w->req.match.payload_len = m->message_len;
	verdict = run_packet(w, p, m->revision);
	conclude(w, p, m->revision, verdict);
	if (repeat) {
		message_release(m);
	} else if (verdict == LN_VERDICT_FORWARD) {
		message_done(m);
		message_release(m);
	} else {
		message_forget(m);
	}
}

/* Mode stream: the lambda sees each packet as it arrives; one that arrives again may be the resend of a lost answer. */
static void stream(struct worker *w, struct packet *p, struct message *m, enum arrival arrival)
{
	bool whole = false;
	int verdict;

	describe(w, p, m->revision, LAMBDA_FRAGMENT);
	w->req.match.record = message_index(m);
	w->req.match.repeat = arrival != ARRIVAL_NEW;
	verdict = run_packet(w, p, m->revision);
	if (verdict != LN_VERDICT_KEEP && verdict != LN_VERDICT_FORWARD) {
		if (arrival == ARRIVAL_NEW)
			message_untake(m, be32toh(p->flow.rpc.index));
	} else if (arrival == ARRIVAL_NEW) {
		whole = message_take(m);
	}
	if (verdict == LN_VERDICT_KEEP && (whole || arrival == ARRIVAL_DONE)) {
		stream_complete(w, p, m, !whole);
		return;
	}
	if (verdict == LN_VERDICT_KEEP)
		acknowledge(p, m);
	else
		conclude(w, p, m->revision, verdict);
	if (whole)
		message_done(m);
	message_release(m);
}

/* Mode assemble: sends the window of the remembered reply that the packet at hand asks for. */
static void send_window(struct worker *w, struct packet *p, struct message *m, uint32_t window, uint32_t size)
{
	uint32_t len = min(m->reply_len - window, size);
	struct answer a = {
		.type = LN_TYPE_RESPONSE,
		.code = m->status,
		.length = len,
		.revision = m->revision->number,
		.count = 1,
		.message_len = m->reply_len,
	};

	if (!size && m->reply_len) {
		refuse(w, p, m->revision, LN_CODE_TOO_LARGE, m->reply_len);
		return;
	}
	if (m->reply_at + window > host.message_max) {
		refuse(w, p, m->revision, LN_CODE_LAMBDA_FAULT, 0);
		return;
	}
	if (m->reply_len > len || window) {
		a.index = window / size;
		a.count = packets(m->reply_len, size);
	}
	memcpy(p->base, m->buffer + m->reply_at + window, len);
	respond(w, p, m->revision, p->base, &a);
}

static void assemble_run(struct worker *w, struct packet *p, struct message *m)
{
	uint8_t *end = m->buffer + host.message_max + LAMBDA_WINDOW;
	struct lambda_headers headers = { .base = m->buffer, .start = m->buffer, .end = end };
	struct lambda_match *match = &w->req.match;
	int verdict;

	describe(w, p, m->revision, LAMBDA_REQUEST);
	match->offset = 0;
	match->payload_len = m->message_len;
	match->record = message_index(m);
	verdict = run(w, m->revision, &headers);
	if (verdict == LN_VERDICT_FORWARD &&
	    (w->req.out_off < 0 || w->req.out_off > (int64_t)host.message_max || w->req.out_len > host.message_max ||
	     w->req.out_off + w->req.out_len > host.message_max + LAMBDA_WINDOW))
		verdict = LN_VERDICT_FAULT;
	if (verdict != LN_VERDICT_FORWARD) {
		conclude(w, p, m->revision, verdict == LN_VERDICT_DROP ? verdict : LN_VERDICT_FAULT);
		message_forget(m);
		return;
	}
	m->reply_at = w->req.out_off;
	m->reply_len = w->req.out_len;
	m->status = w->req.out_status;
	message_done(m);
	send_window(w, p, m, 0, p->flow.room);
	message_release(m);
}

/* Mode assemble: packets are put together; the one that completes its message runs the lambda. */
static void assemble(struct worker *w, struct packet *p, struct message *m, enum arrival arrival)
{
	if (arrival == ARRIVAL_NEW) {
		memcpy(m->buffer + p->offset, p->base, be16toh(p->flow.rpc.length));
		if (message_take(m)) {
			assemble_run(w, p, m);
			return;
		}
	}
	if (arrival == ARRIVAL_DONE)
		send_window(w, p, m, 0, p->flow.room);
	else if (arrival != ARRIVAL_RUNNING)
		acknowledge(p, m);
	message_release(m);
}

/* Whether the packet makes sense by itself; also where its bytes stand in the message. */
static bool place(struct packet *p)
{
	uint32_t index = be32toh(p->flow.rpc.index), count = be32toh(p->flow.rpc.count);
	uint32_t len = be32toh(p->flow.rpc.message_len), n = be16toh(p->flow.rpc.length), size = n;

	if (index >= count || count > LN_MAX_FRAGMENTS || n > len)
		return false;
	p->offset = 0;
	if (count == 1)
		return n == len;
	if (index == count - 1) {
		size = (len - n) / index;
		if (size < n || size * index != len - n)
			return false;
	}
	p->offset = size * index;
	return n && packets(len, size) == count;
}

static void receive_request(struct worker *w, struct packet *p)
{
	struct revision *rev = host.current;
	uint32_t count = be32toh(p->flow.rpc.count);
	enum arrival arrival;
	struct message *m;

	if (be32toh(p->flow.rpc.message_len) > host.message_max || (host.mode == LN_MODE_PACKET && count > 1)) {
		refuse(w, p, rev, LN_CODE_TOO_LARGE, 0);
		return;
	}
	if (host.mode == LN_MODE_PACKET || (host.mode == LN_MODE_STREAM && count == 1)) {
		single(w, p, rev);
		return;
	}
	arrival = message_arrive(p, w->now, &m);
	if (arrival == ARRIVAL_BUSY)
		refuse(w, p, rev, LN_CODE_BUSY, 0);
	else if (arrival == ARRIVAL_MALFORMED)
		refuse(w, p, rev, LN_CODE_MALFORMED, 0);
	else if (host.mode == LN_MODE_STREAM)
		stream(w, p, m, arrival);
	else
		assemble(w, p, m, arrival);
}

/* Mode assemble: a further packet of a remembered reply. */
static void pull_message(struct worker *w, struct packet *p)
{
	uint32_t size = be32toh(p->flow.rpc.message_len), window = be32toh(p->flow.rpc.index) * size;
	struct message *m = message_find(p, w->now);

	if (!m) {
		refuse(w, p, host.current, LN_CODE_STALE, 0);
		return;
	}
	if (m->revision->number != be32toh(p->flow.rpc.revision))
		refuse(w, p, m->revision, LN_CODE_STALE, 0);
	else if (window > m->reply_len)
		refuse(w, p, m->revision, LN_CODE_LAMBDA_FAULT, 0);
	else
		send_window(w, p, m, window, size);
	message_release(m);
}

/* A further packet of a long reply is wanted, from the revision that began it. */
static void receive_pull(struct worker *w, struct packet *p)
{
	struct revision *rev;

	if (host.mode == LN_MODE_ASSEMBLE) {
		pull_message(w, p);
		return;
	}
	rev = revision_find(be32toh(p->flow.rpc.revision));
	if (rev)
		single(w, p, rev);
	else
		refuse(w, p, host.current, LN_CODE_STALE, 0);
}

/* Whether index and packet size of a pull make sense. */
static bool place_pull(const struct packet *p)
{
	uint32_t index = be32toh(p->flow.rpc.index), size = be32toh(p->flow.rpc.message_len);

	return size && size <= p->flow.room && index < be32toh(p->flow.rpc.count) &&
	       (uint64_t)index * size <= INT32_MAX;
}

/* The client has all of its reply. */
static void receive_ack(struct worker *w, struct packet *p)
{
	struct message *m;

	if (!(p->flow.rpc.flags & LN_FLAG_DONE) || host.mode == LN_MODE_PACKET)
		return;
	m = message_find(p, w->now);
	if (m)
		message_forget(m);
}

static void dispatch(struct worker *w, struct packet *p)
{
	const struct ln_rpc *rpc = &p->flow.rpc;

	/* Answers are not answered: two servers would never stop. */
	if (rpc->type == LN_TYPE_RESPONSE || rpc->type == LN_TYPE_ERROR)
		return;
	if (rpc->type < LN_TYPE_REQUEST || rpc->type > LN_TYPE_ERROR) {
		rpc_error(p, LN_CODE_MALFORMED, 0);
		return;
	}
	if (be32toh(rpc->workload) != host.workload) {
		rpc_error(p, LN_CODE_UNKNOWN_WORKLOAD, 0);
		return;
	}
	rpc_stats(w, host.current)->requests++;
	rpc_stats(w, host.current)->bytes_in += be16toh(rpc->length);
	if (be16toh(rpc->length) > p->flow.room || !(rpc->type == LN_TYPE_PULL ? place_pull(p) : place(p))) {
		refuse(w, p, host.current, LN_CODE_MALFORMED, 0);
		return;
	}
	switch (rpc->type) {
	case LN_TYPE_REQUEST:
		receive_request(w, p);
		break;
	case LN_TYPE_PULL:
		receive_pull(w, p);
		break;
	case LN_TYPE_ACK:
		receive_ack(w, p);
		break;
	}
}

static uint64_t clock_fine(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Time is charged by sampling, as in the NIC. */
static void sample(struct worker *w, uint64_t began)
{
	struct ln_stats *stats = rpc_stats(w, host.current);
	uint64_t ns = clock_fine() - began;

	stats->samples++;
	stats->sampled_ns += ns;
	stats->hist[(63 - __builtin_clzll(ns | 1)) & (LN_HIST_BUCKETS - 1)]++;
}

/* Takes a datagram of len bytes, whose header stands right before p->base. */
void rpc_receive(struct worker *w, struct packet *p, uint32_t len)
{
	bool sampled = !(++w->tick & (LN_SAMPLE_EVERY - 1));
	uint64_t began;

	p->out_len = 0;
	p->offset = 0;
	if (len < HEADER)
		return;
	memcpy(&p->flow.rpc, p->base - HEADER, HEADER);
	if (be16toh(p->flow.rpc.magic) != LN_RPC_MAGIC || p->flow.rpc.version != LN_RPC_VERSION)
		return;
	p->flow.room = min(len - HEADER, LN_RPC_MAX_PAYLOAD);
	p->size = p->flow.room;
	if (!sampled) {
		dispatch(w, p);
		return;
	}
	began = clock_fine();
	dispatch(w, p);
	sample(w, began);
}

/* An external service answered a call with len bytes at p->base: the lambda runs again, on them. */
void rpc_resume(struct worker *w, struct packet *p, const struct call *call, uint32_t len)
{
	struct lambda_match *match = &w->req.match;

	p->offset = 0;
	p->flow = call->flow;
	p->size = len > p->flow.room ? len : p->flow.room;
	describe(w, p, call->revision, LAMBDA_REPLY);
	match->message_len = len;
	match->payload_len = len;
	match->window = 0;
	match->window_len = 0;
	match->cookie[0] = call->cookie[0];
	match->cookie[1] = call->cookie[1];
	conclude(w, p, call->revision, run_packet(w, p, call->revision));
}

/* There will be no answer to the call. */
void rpc_abandon(struct worker *w, struct packet *p, const struct call *call, uint8_t code)
{
	p->flow = call->flow;
	refuse(w, p, call->revision, code, 0);
}
