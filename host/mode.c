// SPDX-License-Identifier: Apache-2.0
/* The message modes: how the packets of a request are served (docs/protocol.md, messages and packets). */
#include <string.h>
#include <sys/param.h>

#include "host.h"

/* A request or pull that needs no record. */
void mode_single(struct worker *w, struct packet *p, struct revision *rev)
{
	bool stream = host.mode == LN_MODE_STREAM;
	int verdict;

	run_describe(w, p, rev, stream ? LAMBDA_FRAGMENT : LAMBDA_REQUEST);
	verdict = run_packet(w, p, rev);
	if (stream && verdict == LN_VERDICT_KEEP) {
		w->req.match.event = LAMBDA_COMPLETE;
		verdict = run_packet(w, p, rev);
	}
	reply_conclude(w, p, rev, verdict);
}

/* Mode stream: every packet was taken in; the lambda answers the message in the packet that completed it. */
static void stream_complete(struct worker *w, struct packet *p, struct message *m, bool repeat)
{
	int verdict;

	w->req.match.event = LAMBDA_COMPLETE;
	w->req.match.repeat = repeat;
	w->req.match.payload_len = m->message_len;
	w->req.match.offset = 0;
	verdict = run_packet(w, p, m->revision);
	reply_conclude(w, p, m->revision, verdict);
	if (repeat) {
		message_release(m);
	} else if (verdict == LN_VERDICT_FORWARD) {
		message_done(m);
		message_release(m);
	} else {
		message_forget(m);
	}
}

/*
 * Mode stream: the lambda sees each packet as it arrives. A packet that arrives again may mean that its answer
 * was lost.
 */
void mode_stream(struct worker *w, struct packet *p, struct message *m, enum arrival arrival)
{
	bool whole = false;
	int verdict;

	if (arrival == ARRIVAL_RUNNING) {
		message_release(m);
		return;
	}
	run_describe(w, p, m->revision, LAMBDA_FRAGMENT);
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
		reply_acknowledge(w, p, m);
	else
		reply_conclude(w, p, m->revision, verdict);
	if (whole)
		message_done(m);
	message_release(m);
}

/* Mode assemble: sends the window of the remembered reply that the packet at hand asks for. */
static void send_window(struct worker *w, struct packet *p, struct message *m, uint32_t window, uint32_t size)
{
	uint32_t len = MIN(m->reply_len - window, size);
	struct ln_answer a = {
		.type = LN_TYPE_RESPONSE,
		.code = m->status,
		.length = len,
		.revision = m->revision->number,
		.count = 1,
		.message_len = m->reply_len,
	};

	if (!reply_number(p, window, size, false, &a)) {
		reply_refuse(w, p, m->revision, LN_CODE_TOO_LARGE, m->reply_len);
		return;
	}
	if (m->reply_at + window > host.message_max) {
		reply_refuse(w, p, m->revision, LN_CODE_LAMBDA_FAULT, 0);
		return;
	}
	memcpy(p->base, m->buffer + m->reply_at + window, len);
	reply_send(w, p, m->revision, p->base, &a);
}

/* A message that is run at most once failed: repeats the error. */
static void repeat_error(struct worker *w, struct packet *p, const struct message *m)
{
	if (m->error != LN_UNANSWERED)
		reply_refuse(w, p, m->revision, m->error, m->fault);
}

static void assemble_run(struct worker *w, struct packet *p, struct message *m)
{
	uint8_t *end = m->buffer + host.message_max + LAMBDA_WINDOW;
	struct lambda_headers headers = { .base = m->buffer, .start = m->buffer, .end = end, .limit = end };
	struct lambda_match *match = &w->req.match;
	int verdict;

	/* The lambda may fill the whole buffer, however short the request. */
	if (!m->populated)
		populate(m->buffer, end - m->buffer);
	m->populated = true;
	run_describe(w, p, m->revision, LAMBDA_REQUEST);
	match->offset = 0;
	match->payload_len = m->message_len;
	match->record = message_index(m);
	verdict = run_whole(w, p, m->revision, &headers);
	if (verdict == LN_VERDICT_FORWARD &&
	    (w->req.out_off < 0 || w->req.out_off > (int64_t)host.message_max || w->req.out_len > host.message_max ||
	     w->req.out_off + w->req.out_len > host.message_max + LAMBDA_WINDOW))
		verdict = LN_VERDICT_FAULT;
	if (verdict != LN_VERDICT_FORWARD) {
		m->error = verdict == LN_VERDICT_DROP ? LN_UNANSWERED : LN_CODE_LAMBDA_FAULT;
		m->fault = verdict == LN_VERDICT_DROP ? 0 : ln_fault_of(verdict);
		reply_conclude(w, p, m->revision, verdict == LN_VERDICT_DROP ? verdict : LN_VERDICT_OF(m->fault));
		if (!m->once) {
			message_forget(m);
			return;
		}
		message_done(m);
		message_release(m);
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
void mode_assemble(struct worker *w, struct packet *p, struct message *m, enum arrival arrival)
{
	if (arrival == ARRIVAL_NEW) {
		memcpy(m->buffer + p->offset, p->base, be16toh(p->flow.rpc.length));
		if (message_take(m)) {
			assemble_run(w, p, m);
			return;
		}
	}
	w->req.match.repeat = true;
	if (arrival == ARRIVAL_DONE && m->error)
		repeat_error(w, p, m);
	else if (arrival == ARRIVAL_DONE)
		send_window(w, p, m, 0, p->flow.room);
	else if (arrival != ARRIVAL_RUNNING)
		reply_acknowledge(w, p, m);
	message_release(m);
}

/* Mode assemble: a further packet of a remembered reply. */
void mode_pull(struct worker *w, struct packet *p)
{
	uint32_t size = be32toh(p->flow.rpc.message_len), window = be32toh(p->flow.rpc.index) * size;
	struct message *m = message_find(p, w->now);

	if (!m) {
		reply_refuse(w, p, host.current, LN_CODE_STALE, 0);
		return;
	}
	if (m->revision->number != be32toh(p->flow.rpc.revision))
		reply_refuse(w, p, m->revision, LN_CODE_STALE, 0);
	else if (m->error)
		repeat_error(w, p, m);
	else if (window > m->reply_len)
		reply_refuse(w, p, m->revision, LN_CODE_LAMBDA_FAULT, 0);
	else
		send_window(w, p, m, window, size);
	message_release(m);
}
