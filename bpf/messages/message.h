/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of several packets: reordering and duplicate suppression in the NIC (the λ-NIC paper, section 4.2.1, D3). A
 * lambda owns a range of buckets, a message lives in one way of the bucket that its key hashes to, and the bucket's lock
 * decides every race between CPUs: on veth, the packets of one message do arrive on two CPUs.
 */
#ifndef LN_MESSAGE_H
#define LN_MESSAGE_H

#include "../parse.h"
#include "../place.h"
#include "keep.h"
#include "maps.h"

enum ln_arrival {
	LN_ARRIVAL_NEW, /* not seen before: process it */
	LN_ARRIVAL_AGAIN, /* seen before, the message is not whole yet */
	LN_ARRIVAL_RUNNING, /* another CPU runs the lambda on the whole message, or the client has its reply */
	LN_ARRIVAL_DONE, /* the message was answered and is remembered */
	LN_ARRIVAL_BUSY, /* no free record */
	LN_ARRIVAL_MALFORMED, /* contradicts what the message's other packets said */
	LN_ARRIVAL_TOO_LARGE, /* it would begin a message that is longer than the lambda takes */
	LN_ARRIVAL_ABSENT, /* no such message, and the packet must not begin one */
};

static __always_inline __u32 ln_bucket_of(const struct ln_flow *flow, __u64 request, const struct ln_slot *slot)
{
	const __u64 *addr = (const __u64 *)flow->peer_addr;
	__u64 h = ln_secret ^ request;

	h = (h ^ (h >> 32) ^ addr[0]) * 0x9e3779b97f4a7c15ULL;
	h = (h ^ (h >> 29) ^ addr[1] ^ flow->peer_port) * 0xbf58476d1ce4e5b9ULL;
	return slot->bucket_base + ((h >> 32) & (slot->bucket_count - 1));
}

static __always_inline int ln_is_message(const struct ln_message *m, const struct ln_flow *flow,
					 const struct ln_place *p)
{
	const __u64 *a = (const __u64 *)m->peer_addr, *b = (const __u64 *)flow->peer_addr;

	return m->state != LN_MESSAGE_FREE && m->request == p->request && m->workload == p->workload &&
	       m->peer_port == flow->peer_port && a[0] == b[0] && a[1] == b[1];
}

static __always_inline int ln_expired(const struct ln_message *m, __u64 now)
{
	return !m->users && now >= m->expires_ns;
}

/* Without a free record, the message that was answered longest ago is forgotten; one in progress never is. */
static __always_inline int ln_yields(const struct ln_message *m, __u64 now)
{
	__u64 touched = m->expires_ns - (__u64)m->timeout_ms * 1000000;

	return m->state == LN_MESSAGE_DONE && ln_forgettable(m->once, m->released, touched, now);
}

/* A record that is only kept to recognise late packets goes first. */
static __always_inline __u64 ln_age(const struct ln_message *m)
{
	return m->released ? m->expires_ns >> 1 : m->expires_ns;
}

/* Looks a packet's message up, or begins it. */
LN_GLOBAL int ln_message_arrive(const struct ln_slot *slot, const struct ln_flow *flow, struct ln_place *p)
{
	__u32 bucket, way, chosen = LN_MESSAGE_WAYS, bit, words;
	int verdict = LN_ARRIVAL_BUSY, idle = 0;
	__u64 oldest = ~0ULL;
	struct ln_message *m;
	struct ln_bucket *b;

	if (!slot || !flow || !p || !slot->bucket_count)
		return LN_ARRIVAL_BUSY;
	bit = p->part.index & (LN_MAX_FRAGMENTS - 1);
	bucket = ln_bucket_of(flow, p->request, slot);
	b = bpf_map_lookup_elem(&ln_messages, &bucket);
	if (!b)
		return LN_ARRIVAL_BUSY;
	p->bucket = bucket;

	bpf_spin_lock(&b->lock);
	for (way = 0; way < LN_MESSAGE_WAYS; way++) {
		m = &b->way[way];
		if (ln_is_message(m, flow, p) && !ln_expired(m, p->now)) {
			chosen = way;
			goto found;
		}
		if (way >= slot->message_ways)
			continue; /* it may hold a message of a revision that used more ways */
		if (m->users)
			continue; /* also of a forgotten message: those CPUs would mistake the next one for it */
		if (m->state == LN_MESSAGE_FREE || ln_expired(m, p->now)) {
			if (!idle)
				chosen = way;
			idle = 1;
		} else if (!idle && ln_yields(m, p->now) && ln_age(m) < oldest) {
			oldest = ln_age(m);
			chosen = way;
		}
	}
	if (p->claim != LN_CLAIM_BEGIN) {
		verdict = LN_ARRIVAL_ABSENT;
		goto out;
	}
	if (p->part.message_len > slot->message_max) {
		verdict = LN_ARRIVAL_TOO_LARGE;
		goto out;
	}
	if (chosen >= LN_MESSAGE_WAYS)
		goto out;
	/* Through memory, else the verifier would follow each way separately. */
	p->way = chosen;
	chosen = *(volatile __u32 *)&p->way & (LN_MESSAGE_WAYS - 1);
	m = &b->way[chosen];
	ln_copy_addr(m->peer_addr, flow->peer_addr);
	m->peer_port = flow->peer_port;
	m->request = p->request;
	m->workload = p->workload;
	m->slot = p->slot;
	m->revision = slot->revision;
	m->count = p->part.count;
	m->message_len = p->part.message_len;
	m->fragment = 0;
	m->received = 0;
	m->reply_len = 0;
	m->status = 0;
	m->timeout_ms = slot->message_timeout_ms;
	m->once = p->once;
	m->released = 0;
	m->error = 0;
	m->fault = 0;
	m->state = LN_MESSAGE_PARTIAL;
	words = (p->part.count + 63) / 64;
	for (__u32 i = 0; i < LN_MAX_FRAGMENTS / 64 && i < words; i++) {
		ln_opaque(i); /* else clang makes this a call of memset(), which BPF does not have */
		b->arrived[chosen][i & (LN_MAX_FRAGMENTS / 64 - 1)] = 0;
	}
found:
	if (chosen >= LN_MESSAGE_WAYS)
		goto out;
	m = &b->way[chosen];
	if (p->claim == LN_CLAIM_FREE) {
		/* While a CPU works on it, it is left to expire. */
		if (m->once && m->state == LN_MESSAGE_DONE)
			m->released = 1;
		else if (!m->users && m->state != LN_MESSAGE_RUNNING)
			m->state = LN_MESSAGE_FREE;
		verdict = LN_ARRIVAL_ABSENT;
		goto out;
	}
	m->expires_ns = p->now + ln_patience(m->state, p->deadline_us, m->timeout_ms);
	p->way = chosen;
	p->slot = m->slot;
	p->revision = m->revision;
	p->reply_len = m->reply_len;
	p->status = m->status;
	p->error = m->error;
	p->fault = m->fault;
	if (p->claim != LN_CLAIM_NONE && !ln_place_fits(&p->part, m->count, m->message_len, &m->fragment))
		verdict = LN_ARRIVAL_MALFORMED;
	else if (m->released)
		verdict = p->claim == LN_CLAIM_NONE ? LN_ARRIVAL_NEW
						    : LN_ARRIVAL_RUNNING; /* a pull no longer finds a reply */
	else if (m->state == LN_MESSAGE_DONE)
		verdict = LN_ARRIVAL_DONE;
	else if (m->state == LN_MESSAGE_RUNNING)
		verdict = LN_ARRIVAL_RUNNING;
	else if (b->arrived[chosen][bit >> 6] & (1ULL << (bit & 63)))
		verdict = LN_ARRIVAL_AGAIN;
	else
		verdict = LN_ARRIVAL_NEW;
	/* Marked before its bytes are taken in, so that no duplicate is taken in after the lambda began to run on them. */
	if (verdict == LN_ARRIVAL_NEW && p->claim != LN_CLAIM_NONE)
		b->arrived[chosen][bit >> 6] |= 1ULL << (bit & 63);
	m->users++;
out:
	bpf_spin_unlock(&b->lock);
	p->record = (p->bucket - slot->bucket_base) * LN_MESSAGE_WAYS + p->way;
	return verdict;
}

/*
 * Locks the bucket in which ln_message_arrive() found the packet's message, and sets *way; NULL where it found none.
 * Until ln_message_leave(), the record stays that message's.
 */
static __always_inline struct ln_bucket *ln_bucket_lock(const struct ln_place *p, __u32 *way)
{
	__u32 bucket = p->bucket;
	struct ln_bucket *b;

	*way = p->way;
	if (*way >= LN_MESSAGE_WAYS)
		return NULL;
	b = bpf_map_lookup_elem(&ln_messages, &bucket);
	if (b)
		bpf_spin_lock(&b->lock);
	return b;
}

/* This CPU is done with the packet for which ln_message_arrive() found a record. */
LN_GLOBAL int ln_message_leave(const struct ln_place *p)
{
	struct ln_message *m;
	struct ln_bucket *b;
	__u32 way;

	if (!p)
		return 0;
	b = ln_bucket_lock(p, &way);
	if (!b)
		return 0;
	m = &b->way[way];
	if (m->users)
		m->users--;
	bpf_spin_unlock(&b->lock);
	return 0;
}

/* What became of a packet that ln_message_arrive() let in. */
enum ln_taken {
	LN_TAKEN_NOT, /* it had been taken in before */
	LN_TAKEN_IN,
	LN_TAKEN_LOST, /* the lambda failed on it: a resend is taken as new */
};

/* What an acknowledgement says. */
struct ln_progress {
	__u64 bitmap; /* the word of arrivals around a packet */
	__u32 left; /* packets that were not taken in yet */
	__u32 pad;
};

/* Counts a packet that was taken in; true for the one packet that completes its message. Also sets the message's progress. */
LN_GLOBAL int ln_message_mark(const struct ln_place *p, __u32 taken, struct ln_progress *progress)
{
	struct ln_message *m;
	struct ln_bucket *b;
	int whole = 0;
	__u32 way, bit;
	__u64 mask;

	if (!p || !progress)
		return 0;
	bit = p->part.index & (LN_MAX_FRAGMENTS - 1);
	mask = 1ULL << (bit & 63);
	b = ln_bucket_lock(p, &way);
	if (!b)
		return 0;
	m = &b->way[way];
	if (m->state == LN_MESSAGE_PARTIAL) {
		if (taken == LN_TAKEN_LOST)
			b->arrived[way][bit >> 6] &= ~mask;
		if (taken == LN_TAKEN_IN)
			whole = ++m->received == m->count;
		if (whole)
			m->state = LN_MESSAGE_RUNNING;
	}
	progress->bitmap = b->arrived[way][bit >> 6];
	progress->left = m->count - m->received;
	bpf_spin_unlock(&b->lock);
	return whole;
}

/* Ends a message: remembers its reply, or (state free) forgets both. */
LN_GLOBAL int ln_message_finish(const struct ln_place *p, __u32 state, __u32 reply_len, __u32 status)
{
	struct ln_message *m;
	struct ln_bucket *b;
	__u32 way;

	if (!p)
		return 0;
	b = ln_bucket_lock(p, &way);
	if (!b)
		return 0;
	m = &b->way[way];
	m->state = state;
	m->reply_len = reply_len;
	m->status = status;
	m->error = p->error;
	m->fault = p->fault;
	bpf_spin_unlock(&b->lock);
	return 0;
}

#endif
