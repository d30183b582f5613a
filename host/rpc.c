// SPDX-License-Identifier: Apache-2.0
/* λ-RPC's server side (docs/protocol.md): how one datagram is served. */
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include "host.h"

/* A packet whose message has a record. */
static void receive_part(struct worker *w, struct packet *p, struct message *m, enum arrival arrival)
{
	if (arrival == ARRIVAL_NEW && !p->flow.rpc.index)
		reply_stats(w, m->revision)->requests++;
	if (host.mode == LN_MODE_STREAM)
		mode_stream(w, p, m, arrival);
	else
		mode_assemble(w, p, m, arrival);
}

/* Whether the packet repeats a request whose run took too long. Its next run would, too, and delay all other requests. */
static bool is_endless(const struct worker *w, const struct packet *p)
{
	const struct flow *flow = &w->endless;

	return p->flow.rpc.flags & LN_FLAG_RESEND && p->flow.rpc.request == flow->rpc.request &&
	       !memcmp(&p->flow.peer, &flow->peer, address_len(&p->flow.peer));
}

/* Whether the client has given up while the packet lay in the socket. */
static bool is_late(const struct worker *w, const struct packet *p)
{
	return p->flow.rpc.deadline_us && w->waited_ns > be32toh(p->flow.rpc.deadline_us) * 1000ULL;
}

/* Refuses a packet of a message that is not begun. As with requests, only the first packet is counted; all are refused. */
static void refuse_message(struct worker *w, struct packet *p, struct revision *rev, uint8_t code)
{
	if (p->flow.rpc.index)
		reply_error(p, code, 0);
	else
		reply_refuse(w, p, rev, code, 0);
}

/* Whether a request that runs at most once is to run; else it is answered, or will be. */
static bool begins_once(struct worker *w, struct packet *p)
{
	struct ln_answer a;

	switch (once_arrive(w->now, p, &a)) {
	case ONCE_NEW:
		return true;
	case ONCE_UNDERWAY:
		break;
	case ONCE_ANSWERED:
		reply_again(p, &a);
		break;
	case ONCE_TOO_LARGE:
		reply_error(p, LN_CODE_TOO_LARGE, a.length);
		break;
	case ONCE_FULL:
		reply_refuse(w, p, host.current, LN_CODE_BUSY, 0);
		break;
	}
	return false;
}

static void receive_request(struct worker *w, struct packet *p)
{
	struct revision *rev = host.current;
	bool one = p->part.count == 1;
	enum arrival arrival;
	struct message *m;

	if (is_late(w, p)) {
		reply_refuse(w, p, rev, LN_CODE_DEADLINE, 0);
		return;
	}
	if (is_endless(w, p)) {
		reply_refuse(w, p, rev, LN_CODE_LAMBDA_FAULT, LN_FAULT_TIME);
		return;
	}
	if (host.mode == LN_MODE_PACKET || (host.mode == LN_MODE_STREAM && one)) {
		if (!one || p->part.message_len > host.message_max) {
			refuse_message(w, p, rev, LN_CODE_TOO_LARGE);
			return;
		}
		if (wants_once(&p->flow) && !begins_once(w, p))
			return;
		reply_stats(w, rev)->requests++;
		mode_single(w, p, rev);
		return;
	}
	/* In mode stream, a lambda runs on a packet again if its answer was lost. */
	if (host.mode == LN_MODE_STREAM && wants_once(&p->flow)) {
		refuse_message(w, p, rev, LN_CODE_TOO_LARGE);
		return;
	}
	arrival = message_arrive(p, w->now, &m);
	if (arrival == ARRIVAL_TOO_LARGE)
		refuse_message(w, p, rev, LN_CODE_TOO_LARGE);
	else if (arrival == ARRIVAL_BUSY && atomic_load(&host.succeeded))
		return; /* it came before the switch; sent again, it goes to the other process */
	else if (arrival == ARRIVAL_BUSY)
		refuse_message(w, p, rev, LN_CODE_BUSY);
	else if (arrival == ARRIVAL_MALFORMED)
		reply_refuse(w, p, rev, LN_CODE_MALFORMED, 0);
	else
		receive_part(w, p, m, arrival);
}

/* A pull of a reply's further packet, which the revision that began the reply sends. */
static void receive_pull(struct worker *w, struct packet *p)
{
	struct revision *rev;

	if (host.mode == LN_MODE_ASSEMBLE) {
		mode_pull(w, p);
		return;
	}
	rev = revision_find(be32toh(p->flow.rpc.revision));
	if (rev && !wants_once(&p->flow)) /* a reply of once has one packet; a pull would run the lambda again */
		mode_single(w, p, rev);
	else
		reply_refuse(w, p, host.current, LN_CODE_STALE, 0);
}

static void receive_done(const struct worker *w, const struct packet *p)
{
	if (wants_once(&p->flow) && host.mode != LN_MODE_ASSEMBLE)
		once_release(w, &p->flow, false);
	else if (host.mode != LN_MODE_PACKET)
		message_finish(p);
}

/* An acknowledgement names a message, and carries no bytes of it. */
static bool makes_sense(struct packet *p)
{
	const struct ln_rpc *rpc = &p->flow.rpc;

	p->part = (struct ln_part){ be32toh(rpc->index), be32toh(rpc->count), be32toh(rpc->message_len),
				    be16toh(rpc->length) };
	switch (rpc->type) {
	case LN_TYPE_REQUEST:
		return !ln_place_check(&p->part, &p->offset);
	case LN_TYPE_PULL: /* here message_len is the size of the reply's packets */
		return ln_place_pull(p->part.index, p->part.count, p->part.message_len, p->flow.room);
	}
	return true;
}

/*
 * Refuses a packet whose tag is wrong, or missing where the namespace requires one. The error says that the request was not executed. So only
 * a request that is sent for the first time gets it: one that is sent again may have been executed before.
 */
static bool is_genuine(struct worker *w, struct packet *p)
{
	const struct ln_rpc *rpc = &p->flow.rpc;

	switch (auth_check(p)) {
	case AUTH_GENUINE:
		return true;
	case AUTH_REPLAYED: /* the client has its answer, or sends the request again with another number */
		reply_stats(w, host.current)->replayed++;
		break;
	case AUTH_BAD_TAG:
		reply_stats(w, host.current)->bad_tags++;
		if (rpc->type == LN_TYPE_REQUEST && !rpc->index && !(rpc->flags & LN_FLAG_RESEND))
			reply_refuse(w, p, host.current, LN_CODE_BAD_TAG, 0);
		break;
	}
	return false;
}

static void dispatch(struct worker *w, struct packet *p)
{
	const struct ln_rpc *rpc = &p->flow.rpc;

	/* Answers are not answered: two servers would never stop. */
	if (rpc->type == LN_TYPE_RESPONSE || rpc->type == LN_TYPE_ERROR)
		return;
	if (rpc->type < LN_TYPE_REQUEST || rpc->type > LN_TYPE_ERROR) {
		reply_error(p, LN_CODE_MALFORMED, 0);
		return;
	}
	if (be32toh(rpc->workload) != host.workload) {
		reply_error(p, LN_CODE_UNKNOWN_WORKLOAD, 0);
		return;
	}
	if (!is_genuine(w, p))
		return;
	reply_stats(w, host.current)->bytes_in += be16toh(rpc->length);
	if (be16toh(rpc->length) > p->flow.room || !makes_sense(p)) {
		reply_refuse(w, p, host.current, LN_CODE_MALFORMED, 0);
		return;
	}
	if (rpc->flags & LN_FLAG_REGION && rpc->type != LN_TYPE_ACK) {
		reply_refuse(w, p, host.current, LN_CODE_STALE, 0); /* only the NIC has regions */
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
		/* The client has all of its reply, or gave the message up. */
		if (p->flow.rpc.flags & LN_FLAG_DONE)
			receive_done(w, p);
		break;
	}
}

/* Takes a datagram of len bytes, whose header stands right before p->base. */
void rpc_receive(struct worker *w, struct packet *p, uint32_t len)
{
	p->out_len = 0;
	p->offset = 0;
	p->flow.once = 0;
	p->flow.tagged = false;
	if (len < HEADER)
		return;
	memcpy(&p->flow.rpc, p->base - HEADER, HEADER);
	if (be16toh(p->flow.rpc.magic) != LN_RPC_MAGIC || p->flow.rpc.version != LN_RPC_VERSION)
		return;
	p->flow.room = MIN(len - HEADER, LN_RPC_MAX_PAYLOAD);
	p->size = p->flow.room;
	dispatch(w, p);
}

/* Ends a request whose call will not be answered. */
void rpc_abandon(struct worker *w, struct packet *p, const struct call *call, uint8_t code)
{
	p->flow = call->flow;
	if (w->now > call->deadline_ns)
		code = LN_CODE_DEADLINE;
	reply_refuse(w, p, call->revision, code, 0);
}

/* An external service answered a call with len bytes at p->base: runs the lambda again, on them. */
static void resume(struct worker *w, struct packet *p, const struct call *call, uint32_t len)
{
	struct lambda_match *match = &w->req.match;

	if (w->now > call->deadline_ns) {
		rpc_abandon(w, p, call, LN_CODE_DEADLINE);
		return;
	}
	p->offset = 0;
	p->flow = call->flow;
	p->size = len > p->flow.room ? len : p->flow.room;
	run_describe(w, p, call->revision, LAMBDA_REPLY);
	match->message_len = len;
	match->payload_len = len;
	match->window = 0;
	match->window_len = 0;
	match->cookie[0] = call->cookie[0];
	match->cookie[1] = call->cookie[1];
	reply_conclude(w, p, call->revision, run_packet(w, p, call->revision));
}

/* Takes a datagram of len bytes from memcached, whose frame header is right before p->base. */
void rpc_answer(struct worker *w, struct packet *p, unsigned int server, uint32_t len)
{
	const struct call *call;
	bool whole;

	p->out_len = 0;
	call = call_receive(w, p, server, len, &whole);
	if (call && whole)
		resume(w, p, call, len - CALL_FRAME);
	else if (call)
		rpc_abandon(w, p, call, LN_CODE_TOO_LARGE);
}

/* Takes a datagram of len bytes at p->base that came to a call's own socket. */
void rpc_answer_raw(struct worker *w, struct packet *p, struct call *call, uint32_t len)
{
	p->out_len = 0;
	if (call_receive_raw(w, p, call, len))
		resume(w, p, call, len);
}
