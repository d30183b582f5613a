/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a table of coalesce becomes a batch. Who flushes claims the closed table, sorts it, and reserves the ring's memory; until then others add values to it. One
 * that finds no memory stays closed, and is tried again: when the next new key finds no room, when its time has come, and when it is asked for.
 *
 * The timer is the kernel's (bpf_timer), so that a table is flushed if no datagram comes any more. It ends with the map, and so with the ikernel
 * (kernel/bpf/arraymap.c, array_map_free_timers_wq).
 */
#ifndef COALESCE_FLUSH_H
#define COALESCE_FLUSH_H

#include "sort.h"

#define COALESCE_MONOTONIC 1 /* CLOCK_MONOTONIC of time.h, which BPF lacks */

enum coalesce_flushed {
	COALESCE_NOTHING, /* is to be posted */
	COALESCE_POSTED,
	COALESCE_BUSY, /* somebody else flushes */
	COALESCE_REFUSED, /* by the ring, which is full */
};

/* Claims the closed table, and closes the open one first if need be. */
static __always_inline int coalesce_claim(struct coalesce_memory *mem, int close)
{
	struct ik_state *s = ik_begin();
	int result = COALESCE_NOTHING;

	if (!s)
		return COALESCE_NOTHING;
	if (close && mem->closed == COALESCE_EMPTY && coalesce_open_table(mem)->count)
		coalesce_close(mem);
	if (mem->flushing) {
		result = COALESCE_BUSY;
	} else if (mem->closed == COALESCE_WAITING) {
		mem->flushing = 1;
		result = COALESCE_POSTED;
	}
	ik_end(s);
	return result;
}

/* From now on nobody else has the closed table. */
static __always_inline int coalesce_seize(struct coalesce_memory *mem)
{
	struct ik_state *s = ik_begin();

	if (!s)
		return -1;
	mem->closed = COALESCE_LEAVING;
	ik_end(s);
	return 0;
}

/* The closed table is posted, and empty, or else it waits again. */
static __always_inline void coalesce_release(struct coalesce_memory *mem, __u32 posted)
{
	struct ik_state *s = ik_begin();

	if (!s)
		return;
	if (posted) {
		s->registers.batches++;
		s->registers.posted += posted;
		mem->closed = COALESCE_EMPTY;
		mem->sorted = 0;
	}
	mem->flushing = 0;
	ik_end(s);
}

/* Moves one entry of the closed table to the ring's memory, and its bucket is empty. */
static long coalesce_move_entry(__u32 i, struct bpf_dynptr *to)
{
	__u32 zero = 0, at = sizeof(struct ik_head) + sizeof(struct coalesce_batch), stride, entry;
	struct coalesce_memory *mem;
	struct coalesce_table *t;

	mem = bpf_map_lookup_elem(&coalesce_memories, &zero);
	if (!mem)
		return 1;
	t = coalesce_closed_table(mem);
	stride = coalesce_stride(t->form);
	entry = t->order[mem->sort.from & 1][i % COALESCE_ENTRIES] % COALESCE_ENTRIES;
	if (!ln_length_fits(stride, sizeof(struct coalesce_entry)))
		return 1;
	bpf_dynptr_write(to, at + i * stride, &t->entries[entry], stride, 0);
	t->heads[coalesce_bucket(t, &t->entries[entry])] = 0;
	return 0;
}

/* Moves a table to the ring's memory, which has room for all of it. So no write fails. */
static __always_inline void coalesce_move(struct coalesce_table *t, struct bpf_dynptr *to)
{
	static const struct ln_flow nobody;
	struct ik_message none = { .flow = &nobody };
	struct coalesce_batch batch = {
		.updates = t->updates,
		.count = t->count,
		.key = coalesce_key(t->form),
		.value = coalesce_slot(t->form),
	};
	struct ik_head head = {};

	ik_write_head(&none, &head);
	bpf_dynptr_write(to, 0, &head, sizeof(head), 0);
	bpf_dynptr_write(to, sizeof(head), &batch, sizeof(batch), 0);
	bpf_loop(batch.count, coalesce_move_entry, to, 0);
	t->count = 0;
}

/* Posts the claimed table. Returns how many entries it had; 0 if the ring has no room. */
LN_GLOBAL int coalesce_post(void)
{
	struct coalesce_memory *mem = coalesce_find_memory();
	void *memory = ik_find_ring(0);
	struct coalesce_table *t;
	struct bpf_dynptr to;
	__u32 count, len;

	if (!mem || !memory)
		return 0;
	t = coalesce_closed_table(mem);
	count = t->count;
	len = sizeof(struct ik_head) + sizeof(struct coalesce_batch) + count * coalesce_stride(t->form);
	if (bpf_ringbuf_reserve_dynptr(memory, len, 0, &to) || coalesce_seize(mem)) {
		ik_finish(&to, 0, 1);
		return 0;
	}
	coalesce_move(t, &to);
	ik_finish(&to, 0, 0);
	return count;
}

/* Posts the closed table, if there is one, or else the open one if that is to be closed. Returns enum coalesce_flushed. */
LN_GLOBAL int coalesce_flush(int close)
{
	struct coalesce_memory *mem = coalesce_find_memory();
	int result;
	__u32 posted;

	if (!mem)
		return COALESCE_NOTHING;
	result = coalesce_claim(mem, close);
	if (result != COALESCE_POSTED)
		return result;
	if (!mem->sorted)
		coalesce_sort(mem);
	mem->sorted = 1;
	posted = coalesce_post();
	coalesce_release(mem, posted);
	return posted ? COALESCE_POSTED : COALESCE_REFUSED;
}

/* Posts the closed table, and then the open one. */
static __always_inline int coalesce_flush_both(void)
{
	int result = coalesce_flush(1);

	return result == COALESCE_POSTED ? coalesce_flush(1) : result;
}

/* How long until the next flush, in us; 0: there is to be none by time. */
static __always_inline __u64 coalesce_wait(const struct ik_registers *r, int flushed)
{
	__u64 wait = r->interval < COALESCE_LONGEST ? r->interval : COALESCE_LONGEST;

	if (flushed == COALESCE_BUSY)
		return COALESCE_SOON;
	return flushed == COALESCE_REFUSED && wait && wait < COALESCE_AGAIN ? COALESCE_AGAIN : wait;
}

/* Has the timer run again if it is to. Returns the time that it is to wait, in us. */
LN_GLOBAL __u64 coalesce_schedule(int flushed)
{
	struct coalesce_memory *mem = coalesce_find_memory();
	struct ik_state *s;
	__u64 wait = 0;

	if (!mem)
		return 0;
	s = ik_begin();
	if (!s)
		return 0;
	if (mem->closed != COALESCE_EMPTY || coalesce_open_table(mem)->count)
		wait = coalesce_wait(&s->registers, flushed);
	mem->timed = wait ? s->registers.interval ?: 1 : 0;
	ik_end(s);
	return wait;
}

/* The time has come. */
static int coalesce_tick(void *map, __u32 *key, struct coalesce_memory *mem)
{
	__u64 wait = coalesce_schedule(coalesce_flush_both());

	if (wait)
		bpf_timer_start(&mem->timer, wait * 1000, 0);
	return 0;
}

/* Starts the timer. Where that fails, the next update tries again. */
static __always_inline void coalesce_start(struct coalesce_memory *mem, __u64 wait)
{
	struct ik_state *s;

	if (!bpf_timer_init(&mem->timer, &coalesce_memories, COALESCE_MONOTONIC))
		bpf_timer_set_callback(&mem->timer, coalesce_tick);
	if (!bpf_timer_start(&mem->timer, wait * 1000, 0))
		return;
	s = ik_begin();
	if (!s)
		return;
	mem->timed = 0;
	ik_end(s);
}

/* Starts the timer for a table that has got its first key. */
static __always_inline void coalesce_arm(void)
{
	struct coalesce_memory *mem = coalesce_find_memory();
	__u64 wait = coalesce_schedule(COALESCE_POSTED);

	if (mem && wait)
		coalesce_start(mem, wait);
}

/* Flushes for the application. If somebody else flushes, the rest follows when he is done. */
static __always_inline void coalesce_flush_all(void)
{
	struct coalesce_memory *mem = coalesce_find_memory();

	if (coalesce_flush_both() == COALESCE_BUSY && mem)
		coalesce_start(mem, COALESCE_SOON);
}

#endif
