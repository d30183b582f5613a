/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses that functions return, choose and store. Request: bytes, one for each round; reply: the variables' values then. */
#include <lambda.h>
#include <stdint.h>
#include <string.h>

#define APART __attribute__((noinline)) static

struct cell {
	int64_t value;
	struct cell *next;
};

struct range {
	int32_t *from;
	int64_t n;
};

static int32_t x, y, z[4];
static struct cell cells[8], *head;
static int32_t *kept[4];
static _Alignas(64) uint8_t aligned[256];
static const char *const names[] = { "ab", "cdef" };

APART int32_t *which(int k)
{
	return k & 1 ? &x : &y;
}

APART int32_t *elementOf(int k)
{
	return &z[k & 3];
}

APART int32_t *first(int k)
{
	(void)k;
	return &x;
}

APART int32_t *looked(int k)
{
	for (int i = 0; i < 4; i++)
		if (z[i] == k)
			return &z[i];
	return NULL;
}

static int32_t *(*const places[])(int) = { which, elementOf, first, looked };

APART const char *fromTable(int k)
{
	return names[k & 1];
}

APART const char *literal(int k)
{
	(void)k;
	return "xy";
}

static const char *(*const texts[])(int) = { fromTable, literal };

APART uintptr_t asNumber(int k)
{
	return k & 1 ? (uintptr_t)&z[1] : (uintptr_t)&y;
}

APART struct range rangeOf(int k)
{
	return k & 1 ? (struct range){ z + 1, 3 } : (struct range){ z, 2 };
}

APART int32_t *(*functionOf(int k))(int)
{
	return k & 1 ? which : elementOf;
}

APART int32_t **keeper(int k)
{
	return &kept[k & 3];
}

APART int32_t *passed(int32_t *p, int k)
{
	return k & 1 ? p : &y;
}

APART struct cell *last(struct cell *c)
{
	return c->next ? last(c->next) : c;
}

APART int isFirst(const int32_t *p)
{
	return p == &x;
}

APART int32_t twice(int32_t a)
{
	return a * 2;
}

static void *aligner(void *p, unsigned to)
{
	return (void *)((uintptr_t)p & -(uintptr_t)to);
}

static uint64_t turn(uint8_t k)
{
	static int32_t *taken;
	uint64_t sum = 0;
	struct range r = rangeOf(k);
	int32_t *p = places[k & 3](k >> 2), local = k, *either = passed(&local, k >> 1);
	uint8_t *low = __builtin_align_down(&aligned[k], 32), *high = __builtin_align_up(&aligned[k & 127], 64);

	*which(k) += 7;
	if (p)
		*p += k;
	sum = strlen(texts[k & 1](k >> 1)) * 3 + (uint8_t)texts[k >> 1 & 1](k)[1];
	*(int32_t *)asNumber(k) ^= 3;
	for (int64_t i = 0; i < r.n; i++)
		r.from[i] += i + 1;
	*functionOf(k)(k >> 1) -= 2;
	*keeper(k) = which(k >> 2);
	**keeper(k) += 5;
	*either += 11;
	sum += local + isFirst(p) * 2 + isFirst(which(k)) * 4 + (kept[0] == kept[1]) + (uint64_t)twice(k);
	cells[k & 7] = (struct cell){ k, head && head < &cells[k & 7] ? head : NULL };
	head = &cells[k & 7];
	sum += last(head) - cells;
	*low += k, *high ^= k, *(uint8_t *)aligner(&aligned[k], 16) += 1;
	sum += low - aligned + ((uintptr_t)aligned & 63) * 1000;
	p = __atomic_exchange_n(&taken, which(k), __ATOMIC_RELAXED);
	if (p)
		*p += 1;
	return sum;
}

int addresses(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[64];
	uint32_t n = lambda_read(headers, in, sizeof(in));
	uint64_t out[8] = { 0 };

	(void)match_data;
	x = y = 1;
	head = NULL;
	memset(z, 0, sizeof(z));
	memset(cells, 0, sizeof(cells));
	memset(aligned, 0, sizeof(aligned));
	for (uint32_t i = 0; i < n; i++)
		out[0] = out[0] * 31 + turn(in[i]);
	out[1] = (uint32_t)x, out[2] = (uint32_t)y;
	for (int i = 0; i < 4; i++)
		out[3] = out[3] * 31 + (uint32_t)z[i];
	for (int i = 0; i < 8; i++)
		out[4] = out[4] * 31 + (uint64_t)cells[i].value + (cells[i].next ? cells[i].next - cells : 9);
	for (int i = 0; i < 256; i++)
		out[5] = out[5] * 31 + aligned[i];
	return lambda_write(headers, out, sizeof(out));
}
