/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Atomic operations through pointers in memory, and operations that order others. */
#include <lambda.h>
#include <stdlib.h>

struct counter {
	uint32_t hits;
	struct counter *next;
	uint64_t sum;
};

static struct counter counters[4];
static uint32_t *where[4];
static _Atomic uint32_t rounds;
static uint32_t lock, guarded;

static uint64_t walk(uint32_t n)
{
	uint64_t sum = 0;

	for (int i = 0; i < 4; i++) {
		counters[i].next = i < 3 ? &counters[i + 1] : NULL;
		where[i] = &counters[3 - i].hits;
	}
	for (struct counter *c = counters; c; c = c->next) {
		__sync_fetch_and_add(&c->hits, n);
		c->sum += n + c->hits;
		sum += __atomic_load_n(&c->sum, __ATOMIC_ACQUIRE);
	}
	__atomic_fetch_xor(where[n & 3], n, __ATOMIC_SEQ_CST);
	return sum + __sync_val_compare_and_swap(where[n & 3], n, 5);
}

static uint32_t own(uint32_t n)
{
	struct counter *c = calloc(2, sizeof(*c));

	if (!c)
		return 0;
	__sync_fetch_and_add(&c[n & 1].sum, n);
	__sync_synchronize();
	__atomic_store_n(&c[1].hits, n, __ATOMIC_RELEASE);
	return c[0].sum + c[1].sum * 3 + c[1].hits;
}

int ordered(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t n = 0;
	uint64_t out[4];

	if (lambda_read(headers, &n, sizeof(n)) != sizeof(n))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	while (__sync_lock_test_and_set(&lock, 1))
		;
	guarded = guarded * 3 + n;
	out[0] = guarded;
	__sync_lock_release(&lock);
	out[1] = walk(n);
	out[2] = own(n);
	out[3] = ++rounds;
	return lambda_write(headers, out, sizeof(out));
}
