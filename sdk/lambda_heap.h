/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * malloc() and the like: a region that begins empty with each request, the same on the NIC and on the host. Blocks are powers of two;
 * freed blocks are kept by size for the next one of that size. LAMBDA_HEAP is the region's size; a source that needs another defines
 * it before it includes <stdlib.h>.
 */
#ifndef LAMBDA_HEAP_H
#define LAMBDA_HEAP_H

#include <stddef.h>
#include <stdint.h>
#ifndef __bpf__
#include_next <stdlib.h>
#endif

#ifndef LAMBDA_HEAP
#define LAMBDA_HEAP 16384
#endif

/* Blocks of 16 bytes up to 2 GiB. */
#define LAMBDA_HEAP_SIZES 28

/* The header before the bytes that malloc() returns. */
struct lambda_block {
	uint64_t size; /* the exponent, less that of the smallest */
	struct lambda_block *next; /* free block of the same size; in use, the returned bytes begin here */
};

/* A bit in used, otherwise a multiple of 16: the heap had too little memory. The compiler reads it (compiler/passes/guards.cpp). */
#define LAMBDA_HEAP_REFUSED 1UL

/* The first word is set to zero before a request; the rest follows from it. */
struct lambda_heap {
	uint64_t used;
	struct lambda_block *freed[LAMBDA_HEAP_SIZES];
	uint64_t bytes[LAMBDA_HEAP / 8];
};

#ifdef __bpf__
/* In the running CPU's memory; the compiler empties it. */
static struct lambda_heap lambda_heap __attribute__((section(".bss..request")));

static inline struct lambda_heap *lambda_heap_own(void)
{
	return &lambda_heap;
}
#else
/* Of the running thread; lambda_heap_begin() empties it. This TLS model, of one word, needs no other library. */
static __thread struct lambda_heap *lambda_heap __attribute__((tls_model("initial-exec")));

static inline struct lambda_heap *lambda_heap_own(void)
{
	if (!lambda_heap)
		lambda_heap = calloc(1, sizeof(*lambda_heap));
	return lambda_heap;
}

static inline void lambda_heap_begin(void)
{
	if (lambda_heap)
		lambda_heap->used = 0;
}

/* Whether the request asked for more memory than the heap has. */
static inline int lambda_heap_refused(void)
{
	return lambda_heap && lambda_heap->used & LAMBDA_HEAP_REFUSED;
}
#endif

/* The exponent of the smallest block that holds size bytes, less 4. */
static inline uint64_t lambda_heap_size(size_t size)
{
	uint64_t last = size + offsetof(struct lambda_block, next) - 1;

	return last < 16 ? 0 : 60 - __builtin_clzll(last);
}

static inline void *lambda_malloc(size_t size)
{
	struct lambda_heap *heap = lambda_heap_own();
	struct lambda_block *block;
	uint64_t exponent, used;

	if (!heap)
		return NULL;
	if (!heap->used)
		for (int i = 0; i < LAMBDA_HEAP_SIZES; i++)
			heap->freed[i] = NULL;
	if (size > LAMBDA_HEAP) {
		heap->used |= LAMBDA_HEAP_REFUSED;
		return NULL;
	}
	exponent = lambda_heap_size(size);
	block = heap->freed[exponent];
	if (block) {
		heap->freed[exponent] = block->next;
		return &block->next;
	}
	used = heap->used & ~LAMBDA_HEAP_REFUSED;
	if (16UL << exponent > LAMBDA_HEAP - used) {
		heap->used |= LAMBDA_HEAP_REFUSED;
		return NULL;
	}
	block = (struct lambda_block *)((char *)heap->bytes + used);
	heap->used += 16UL << exponent;
	block->size = exponent;
	return &block->next;
}

static inline struct lambda_block *lambda_block(void *bytes)
{
	return (struct lambda_block *)((char *)bytes - offsetof(struct lambda_block, next));
}

static inline void lambda_free(void *bytes)
{
	struct lambda_block *block = lambda_block(bytes);
	struct lambda_heap *heap = lambda_heap_own();
	uint64_t exponent;

	if (!bytes || !heap)
		return;
	exponent = block->size % LAMBDA_HEAP_SIZES;
	block->next = heap->freed[exponent];
	heap->freed[exponent] = block;
}

static inline void *lambda_calloc(size_t count, size_t size)
{
	void *bytes;

	bytes = lambda_malloc(size && count > LAMBDA_HEAP / size ? ~(size_t)0 : count * size);
	if (bytes)
		__builtin_memset(bytes, 0, count * size);
	return bytes;
}

static inline void *lambda_realloc(void *bytes, size_t size)
{
	uint64_t room;
	void *moved;

	if (!bytes)
		return lambda_malloc(size);
	room = (16UL << lambda_block(bytes)->size % LAMBDA_HEAP_SIZES) - offsetof(struct lambda_block, next);
	if (size <= room)
		return bytes;
	moved = lambda_malloc(size);
	if (!moved)
		return NULL;
	__builtin_memcpy(moved, bytes, room);
	lambda_free(bytes);
	return moved;
}

#endif
