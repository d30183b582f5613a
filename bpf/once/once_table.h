/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which record of its bucket a request gets that is to be executed at most once (docs/protocol.md). No running request is forgotten
 * before its time. Of the others, those go first whose answer arrived, then the oldest of the owner that holds most of the bucket.
 * So a flood harms only the workload and address that it uses. NIC program and lambda-host share these rules.
 */
#ifndef LN_ONCE_TABLE_H
#define LN_ONCE_TABLE_H

#include "../layout.h"

/* Whose request it is. */
struct ln_once_key {
	__u64 addr[2];
	__u64 request; /* as on the wire */
	__u32 workload; /* in host order; the fields below are in network order */
	__be16 port;
};

static inline __attribute__((always_inline)) int ln_once_is(const struct ln_once *r, const struct ln_once_key *key)
{
	const __u64 *addr = (const __u64 *)r->peer_addr;

	return r->state != LN_ONCE_FREE && r->request == key->request && r->workload == key->workload &&
	       r->peer_port == key->port && addr[0] == key->addr[0] && addr[1] == key->addr[1];
}

static inline __attribute__((always_inline)) __u64 ln_once_hash(const struct ln_once_key *key, __u64 secret)
{
	__u64 h = secret ^ key->request;

	h = (h ^ (h >> 32) ^ key->addr[0] ^ key->workload) * 0x9e3779b97f4a7c15ULL;
	return (h ^ (h >> 29) ^ key->addr[1] ^ key->port) * 0xbf58476d1ce4e5b9ULL >> 32;
}

/* Stands for workload and address in comparisons. A collision of two owners only costs them fairness towards each other. */
static inline __attribute__((always_inline)) __u32 ln_once_owner(const struct ln_once_key *key)
{
	__u64 h = (key->addr[0] ^ key->workload) * 0x9e3779b97f4a7c15ULL ^ key->addr[1];

	return h * 0xbf58476d1ce4e5b9ULL >> 32;
}

/* The way that remembers a request; LN_ONCE_WAYS for none. */
static inline __attribute__((always_inline)) __u32 ln_once_find(const struct ln_once *way,
								const struct ln_once_key *key, __u64 now)
{
	__u32 found = LN_ONCE_WAYS;

	for (__u32 i = 0; i < LN_ONCE_WAYS; i++)
		if (ln_once_is(&way[i], key) && now < way[i].expires_ns)
			found = i;
	return found;
}

/* 1 if a and b are equal. Without a branch, both sides of which the verifier would follow. */
static inline __attribute__((always_inline)) __u64 ln_once_equal(__u32 a, __u32 b)
{
	__u64 equal = ((__u64)(a ^ b) - 1) >> 63;

	asm volatile("" : "+r"(equal)); /* keeps the compiler from making it a branch */
	return equal;
}

/*
 * Ranks a bucket's records: the highest goes first, 0 stays. Expired records go before released ones, and these before those of the
 * owner that holds most; among equals, the oldest goes. Times are below 2^63.
 */
static inline __attribute__((always_inline)) __u64 ln_once_rank(const struct ln_once *r, __u64 held, __u64 now)
{
	__u64 over = ln_once_equal(r->state, LN_ONCE_FREE) | (~(now - r->expires_ns) >> 63);
	__u64 released = ln_once_equal(r->state, LN_ONCE_RELEASED), done = ln_once_equal(r->state, LN_ONCE_DONE);
	__u64 rank = (255 & -released) | (held & -done);

	rank = rank << 56 | (~r->expires_ns >> 8 & -(released | done)) | -over;
	return rank & -ln_once_equal(r->users, 0); /* a record stays while a CPU copies its answer */
}

/* Chooses a way for a new request; LN_ONCE_WAYS where its workload runs too many, or all ways are needed. */
static inline __attribute__((always_inline)) __u32 ln_once_choose(const struct ln_once *way, __u32 workload, __u64 now)
{
	__u32 chosen = LN_ONCE_WAYS;
	__u64 best = 0, running = 0;

	for (__u32 i = 0; i < LN_ONCE_WAYS; i++) {
		__u64 held = 0, rank;

		running += ln_once_equal(way[i].workload, workload) & ln_once_equal(way[i].state, LN_ONCE_RUNNING);
		for (__u32 j = 0; j < LN_ONCE_WAYS; j++)
			held += 16 * ln_once_equal(way[i].workload, way[j].workload) +
				ln_once_equal(way[i].owner, way[j].owner);
		rank = ln_once_rank(&way[i], held, now);
		if (rank > best) {
			best = rank;
			chosen = i;
		}
	}
	return running < LN_ONCE_RUNNING_MAX ? chosen : LN_ONCE_WAYS;
}

/* Takes the record for a request that begins to run. */
static inline __attribute__((always_inline)) void ln_once_take(struct ln_once *r, const struct ln_once_key *key,
							       __u64 now)
{
	__u64 *addr = (__u64 *)r->peer_addr;

	addr[0] = key->addr[0];
	addr[1] = key->addr[1];
	r->request = key->request;
	r->workload = key->workload;
	r->peer_port = key->port;
	r->owner = ln_once_owner(key);
	r->expires_ns = now + LN_ONCE_NS;
	r->state = LN_ONCE_RUNNING;
}

#endif
