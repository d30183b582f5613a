/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings, by which an ikernel sends messages to its application, which reads them in place. An ikernel that has rings includes this file after ikernel.h. The
 * application says how many there are and how long each is (Ikernel.OpenRings); until then there are none.
 *
 * A ring has one reader. Any CPU may post to it, but CPUs that post to the same ring wait for each other; with a ring for each CPU (ik_ring_by_core) none
 * waits. What the application has not read stays where it is. So a ring takes no more than its length until the application reads on: then the ikernel is
 * told so, and the ring counts what it refused. The ikernel decides whether the datagram is dropped, or passed to the socket.
 */
#ifndef IK_RINGS_H
#define IK_RINGS_H

#include "ikernel.h"

struct ik_ring_memory {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536); /* those that the daemon makes have the length that the application asks for */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, IK_RINGS);
	__type(key, __u32);
	__array(values, struct ik_ring_memory);
} ik_rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, IK_RINGS);
	__type(key, __u32);
	__type(value, struct ik_ring_counts);
} ik_ring_counters SEC(".maps");

/* Set by the daemon, once. */
volatile __u32 ik_rings_open; /* how many there are */
volatile __u32 ik_ring_flags; /* for each message: BPF_RB_NO_WAKEUP if the application polls, or else 0 */

/* How many rings there are. They are numbered from 0. */
static __always_inline __u32 ik_rings_count(void)
{
	return ik_rings_open;
}

/* The ring for a number that the ikernel chooses, such as the hash of a key. */
static __always_inline __u32 ik_ring_by(__u32 number)
{
	__u32 count = ik_rings_open;

	return count ? number % count : 0;
}

/* The ring of the CPU at which the message is. */
static __always_inline __u32 ik_ring_by_core(void)
{
	return ik_ring_by(bpf_get_smp_processor_id());
}

/* A ring; NULL if there is none of this number. One that is open and not there is a fault. */
static __always_inline void *ik_find_ring(__u32 ring)
{
	void *memory = bpf_map_lookup_elem(&ik_rings, &ring);

	if (!memory && ring < ik_rings_open)
		ik_fault(IK_FAULT_RING_NOT_FOUND);
	return memory;
}

/* Counts a message; returns whether it was posted. */
static __always_inline int ik_count_post(__u32 ring, int posted)
{
	struct ik_ring_counts *counts = bpf_map_lookup_elem(&ik_ring_counters, &ring);

	if (counts && posted)
		__sync_fetch_and_add(&counts->posted, 1);
	else if (counts)
		__sync_fetch_and_add(&counts->refused, 1);
	return posted;
}

/* Says of which message this is, and when it is posted. */
static __always_inline void ik_write_head(const struct ik_message *m, struct ik_head *head)
{
	const struct ln_flow *flow = m->flow;

	head->time = bpf_ktime_get_ns();
	ln_copy_addr(head->peer_addr, flow->peer_addr);
	ln_copy_addr(head->own_addr, flow->own_addr);
	head->peer_port = flow->peer_port;
	head->own_port = flow->own_port;
	head->ipv6 = flow->ipv6;
}

/*
 * Reserves len bytes, a constant, for what the ikernel says about a message; NULL if the ring is full, or there is none of this number. The ikernel writes all
 * of them in place and commits them. In between, the ring's reader waits.
 */
static __always_inline void *ik_reserve(const struct ik_message *m, __u32 ring, const __u32 len)
{
	void *memory = ik_find_ring(ring);
	struct ik_head *head;

	if (!memory)
		return NULL;
	head = bpf_ringbuf_reserve(memory, sizeof(*head) + len, 0);
	if (!ik_count_post(ring, head != NULL))
		return NULL;
	ik_write_head(m, head);
	return head + 1;
}

static __always_inline void ik_commit(void *reserved)
{
	bpf_ringbuf_submit((struct ik_head *)reserved - 1, ik_ring_flags);
}

/* Where bytes of a message are on their way to a ring. */
struct ik_piece {
	__u8 bytes[4096];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ik_piece);
} ik_pieces SEC(".maps");

static __always_inline int ik_copy_out(const struct ik_message *m, struct bpf_dynptr *to)
{
	struct ik_piece *piece;
	__u32 zero = 0, n;

	piece = bpf_map_lookup_elem(&ik_pieces, &zero);
	if (!piece)
		return -1;
	for (__u32 off = 0; off < IK_MAX_MESSAGE && off < m->len; off += sizeof(piece->bytes)) {
		n = m->len - off;
		if (n > sizeof(piece->bytes))
			n = sizeof(piece->bytes);
		if (!ln_length_fits(n, sizeof(piece->bytes)) ||
		    bpf_xdp_load_bytes(m->ctx, m->at + off, piece->bytes, n) ||
		    bpf_dynptr_write(to, sizeof(struct ik_head) + off, piece->bytes, n, 0))
			return -1;
	}
	return 0;
}

/* Posts what was written, or gives the reservation back, which the kernel wants also where it failed. Returns -1 if it failed. */
static __always_inline int ik_finish(struct bpf_dynptr *to, __u32 ring, int failed)
{
	if (failed)
		bpf_ringbuf_discard_dynptr(to, ik_ring_flags);
	else
		bpf_ringbuf_submit_dynptr(to, ik_ring_flags);
	ik_count_post(ring, !failed);
	return failed ? -1 : 0;
}

/* Posts a whole message; -1 if the ring is full, or there is none of this number. */
static __always_inline int ik_forward(const struct ik_message *m, __u32 ring)
{
	void *memory = ik_find_ring(ring);
	struct ik_head head = {};
	struct bpf_dynptr to;
	long failed;

	if (!memory || m->len > IK_MAX_MESSAGE)
		return -1;
	ik_write_head(m, &head);
	failed = bpf_ringbuf_reserve_dynptr(memory, sizeof(head) + m->len, 0, &to);
	failed = failed || bpf_dynptr_write(&to, 0, &head, sizeof(head), 0) || ik_copy_out(m, &to);
	return ik_finish(&to, ring, failed);
}

/* Posts len bytes, of which there is room for most, a constant; -1 if the ring is full, or there is none of this number. */
static __always_inline int ik_post(const struct ik_message *m, __u32 ring, const void *bytes, __u32 len,
				   const __u32 most)
{
	void *memory = ik_find_ring(ring);
	struct ik_head head = {};
	struct bpf_dynptr to;
	long failed;

	if (!memory || !ln_length_fits(len, most))
		return -1;
	ik_write_head(m, &head);
	failed = bpf_ringbuf_reserve_dynptr(memory, sizeof(head) + len, 0, &to);
	failed = failed || bpf_dynptr_write(&to, 0, &head, sizeof(head), 0) ||
		 bpf_dynptr_write(&to, sizeof(head), (void *)bytes, len, 0);
	return ik_finish(&to, ring, failed);
}

const struct ik_ring_counts *ik_ring_counts_ __attribute__((unused));

#endif
