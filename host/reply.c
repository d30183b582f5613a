// SPDX-License-Identifier: Apache-2.0
/* What goes back to the client: header, errors, acknowledgements, and the lambda's reply. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

/* Turns the packet at hand into an answer: the header goes right before the answer's bytes. */
static void answer(struct packet *p, uint8_t *at, const struct ln_answer *a)
{
	const struct ln_rpc *req = &p->flow.rpc;
	struct ln_rpc rpc = {
		.magic = htobe16(LN_RPC_MAGIC),
		.version = LN_RPC_VERSION,
		.type = a->type,
		.flags = a->flags,
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
		.grant = htobe32(a->grant),
	};

	if (p->flow.once)
		once_settle(&p->flow, at, a);
	auth_sign(&p->flow, &rpc, at, a->length);
	p->out = at - HEADER;
	memcpy(p->out, &rpc, HEADER);
	p->out_len = HEADER + a->length;
	p->out_fd = p->flow.fd;
	p->to_service = false;
}

void reply_error(struct packet *p, uint8_t code, uint32_t needed)
{
	struct ln_answer a = { .type = LN_TYPE_ERROR, .code = code, .count = 1, .message_len = needed };

	answer(p, p->base, &a);
}

/* The process dies of a request, and tells the client that. Called by a signal handler, when memory may be corrupt. */
void reply_last(const struct flow *flow)
{
	struct ln_rpc rpc = flow->rpc;

	rpc.type = LN_TYPE_ERROR;
	rpc.flags = 0;
	rpc.code = LN_CODE_LAMBDA_FAULT;
	rpc.length = 0;
	rpc.revision = 0;
	rpc.index = 0;
	rpc.count = htobe32(1);
	rpc.message_len = htobe32(LN_FAULT_CRASH);
	rpc.deadline_us = 0;
	rpc.grant = 0;
	auth_sign(flow, &rpc, (const uint8_t *)(&rpc + 1), 0);
	syscall(SYS_sendto, flow->fd, &rpc, HEADER, MSG_DONTWAIT, &flow->peer, address_len(&flow->peer));
}

/* Sends a remembered answer, whose bytes are the payload. */
void reply_again(struct packet *p, const struct ln_answer *a)
{
	answer(p, p->base, a);
}

struct ln_stats *reply_stats(struct worker *w, struct revision *rev)
{
	return &rev->stats[w->id];
}

/* As in the NIC program, needed says which fault it was, for a lambda's fault; 0: the lambda's own. */
void reply_refuse(struct worker *w, struct packet *p, struct revision *rev, uint8_t code, uint32_t needed)
{
	struct ln_stats *stats = reply_stats(w, rev);

	if (code == LN_CODE_LAMBDA_FAULT && !needed)
		needed = LN_FAULT_OWN;
	stats->errors++;
	if (code == LN_CODE_LAMBDA_FAULT) {
		stats->faults++;
		stats->faults_by[needed % LN_FAULTS]++;
	}
	stats->late += code == LN_CODE_DEADLINE;
	reply_error(p, code, needed);
}

void reply_send(struct worker *w, struct packet *p, struct revision *rev, uint8_t *at, const struct ln_answer *a)
{
	struct ln_stats *stats = reply_stats(w, rev);

	/* As with requests, only the first packet is counted. */
	stats->replies += !a->index && p->flow.rpc.type == LN_TYPE_REQUEST && !w->req.match.repeat;
	stats->bytes_out += a->length;
	answer(p, at, a);
}

/* Acknowledges the packet at hand, if its sender wants that, with a bitmap of the packets around it. */
void reply_acknowledge(const struct worker *w, struct packet *p, struct message *m)
{
	uint32_t index = be32toh(p->flow.rpc.index);
	uint64_t arrived = message_bitmap(m, index), bitmap = htobe64(arrived);
	struct ln_answer a = {
		.type = LN_TYPE_ACK,
		.length = sizeof(bitmap),
		.revision = m->revision->number,
		.index = index,
		.count = m->count,
		.message_len = m->message_len,
	};

	if (!(p->flow.rpc.flags & LN_FLAG_ACK_WANTED))
		return;
	a.grant = message_grant(m, index, arrived, w->now);
	if (p->flow.room < sizeof(bitmap)) /* no amplification, not even by eight bytes */
		a.length = 0;
	else
		memcpy(p->base, &bitmap, sizeof(bitmap));
	answer(p, p->base, &a);
}

/*
 * Where the len bytes at off are, with room for a header before them; NULL if they are not the lambda's. Bytes that
 * start before the payload are moved: their header would overwrite the packet before.
 */
static uint8_t *claim(struct packet *p, int32_t off, uint32_t len)
{
	uint8_t *moved = p->spare + HEAD_ROOM;
	int32_t size = p->size;

	if (off < -LN_PREFIX || off > size || len > LN_RPC_MAX_PAYLOAD || len > (uint32_t)(size - off))
		return NULL;
	return off >= 0 ? p->base + off : memmove(moved, p->base + off, len);
}

/*
 * Sets the packet number and count of a reply that is sent from window on in packets of step bytes; false where no packet can carry
 * any of it. part: the reply answers the packet at hand, not its message.
 */
bool reply_number(const struct packet *p, uint32_t window, uint32_t step, bool part, struct ln_answer *a)
{
	struct ln_asked asked = {
		.index = be32toh(p->flow.rpc.index),
		.count = be32toh(p->flow.rpc.count),
		.window = window,
		.step = step,
		.type = p->flow.rpc.type,
		.part = part,
	};

	return !ln_answer_number(a, &asked);
}

/* Sends a reply that the lambda left in the datagram. */
static void forward(struct worker *w, struct packet *p, struct revision *rev)
{
	const struct lambda_match *match = &w->req.match;
	uint32_t len = w->req.out_len, total = w->req.out_total;
	struct ln_answer a = {
		.type = LN_TYPE_RESPONSE,
		.code = w->req.out_status,
		.length = len,
		.revision = rev->number,
		.count = 1,
		.message_len = total,
	};
	uint8_t *at;

	if (len > p->flow.room) {
		reply_refuse(w, p, rev, LN_CODE_TOO_LARGE, len > LN_RPC_MAX_PAYLOAD ? 0 : len);
		return;
	}
	if (p->flow.once && total > len) { /* the further packets would be further runs */
		reply_refuse(w, p, rev, LN_CODE_TOO_LARGE, 0);
		return;
	}
	if (!reply_number(p, match->window, match->window_len, match->event == LAMBDA_FRAGMENT, &a)) {
		reply_refuse(w, p, rev, LN_CODE_TOO_LARGE, total);
		return;
	}
	at = claim(p, w->req.out_off, len);
	if (!at) {
		reply_refuse(w, p, rev, LN_CODE_LAMBDA_FAULT, 0);
		return;
	}
	reply_send(w, p, rev, at, &a);
}

/* Carries out the lambda's verdict on a datagram that has no message record. */
void reply_conclude(struct worker *w, struct packet *p, struct revision *rev, int verdict)
{
	int code;

	switch (verdict) {
	case LN_VERDICT_DROP:
		reply_stats(w, rev)->drops++;
		if (p->flow.once)
			once_release(w, &p->flow, true);
		break;
	case LN_VERDICT_FORWARD:
		forward(w, p, rev);
		break;
	case LN_VERDICT_CALL:
		code = call_begin(w, p, rev, claim(p, w->req.out_off, w->req.out_len));
		if (code)
			reply_refuse(w, p, rev, code, 0);
		else
			reply_stats(w, rev)->calls++;
		break;
	default:
		reply_refuse(w, p, rev, LN_CODE_LAMBDA_FAULT, ln_fault_of(verdict));
	}
}
