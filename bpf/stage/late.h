/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of a match stage that go on later, when no packet comes that would carry them: a packet that waits for the host, and one
 * whose clone went first, as XDP sends one packet for each that came. Waiting packets are in ln_waiting, the others pass through
 * ln_copies. From there, pacer (host/late.c) gives each to ln_later as a packet that begins with its struct ln_late, and carries out
 * the action that ln_later returns. The flow is kept with the packet, so that the stage's output is checked as always.
 */
#ifndef LN_LATE_H
#define LN_LATE_H

#include "../copy.h"
#include "stage.h"

volatile __u32 ln_waiting_count; /* packets in ln_waiting */

#define LN_LATE_HEAD __builtin_offsetof(struct ln_late, bytes)
#define LN_EEXIST 17

/*
 * What tells packets apart: all bytes but IPv4's identification and header checksum, which differ when a sender repeats a packet.
 */
static __always_inline __u64 ln_late_key(struct ln_late *late, __u32 l3)
{
	__u8 *id = late->bytes + l3 + 4, *sum = late->bytes + l3 + 10;
	__u16 id_was, sum_was;
	__u64 key;

	if (late->flow.ipv6)
		return ln_late_digest(late);
	__builtin_memcpy(&id_was, id, sizeof(id_was));
	__builtin_memcpy(&sum_was, sum, sizeof(sum_was));
	__builtin_memset(id, 0, sizeof(id_was));
	__builtin_memset(sum, 0, sizeof(sum_was));
	key = ln_late_digest(late);
	__builtin_memcpy(id, &id_was, sizeof(id_was));
	__builtin_memcpy(sum, &sum_was, sizeof(sum_was));
	return key;
}

/* Saves the packet at hand as it is; -1 where it is too long. */
LN_GLOBAL int ln_late_save(struct xdp_md *ctx, struct ln_stage_scratch *scratch)
{
	struct ln_late *late;
	__u32 l3;

	if (!scratch || ln_late_load(ctx, &scratch->late))
		return -1;
	late = &scratch->late;
	l3 = ln_l2_len(&scratch->flow);
	ln_opaque(l3);
	if (l3 > 0xff)
		return -1;
	late->flow = scratch->flow;
	late->pass.instance = scratch->instance;
	late->came = scratch->came;
	late->came_l3 = scratch->came_l3;
	late->key = ln_late_key(late, l3);
	return 0;
}

/* Lets the saved packet wait for the host; -1 where there is no room for it. */
static __always_inline int ln_wait_begin(struct ln_stage_scratch *scratch, const struct ln_slot *slot)
{
	struct ln_late *late = &scratch->late;
	long err;

	late->workload = slot->workload;
	late->verdict = LN_STAGE_WAIT;
	late->until = scratch->until ?: bpf_ktime_get_ns() + LN_WAIT_SECONDS * 1000000000ULL;
	err = bpf_map_update_elem(&ln_waiting, &late->key, late, BPF_NOEXIST);
	if (!err)
		__sync_fetch_and_add(&ln_waiting_count, 1);
	else if (err != -LN_EEXIST) /* the same packet may just have come in on another CPU */
		ln_count(LN_COUNT_BUSY);
	return err ? -1 : 0;
}

/* Takes a packet out of ln_waiting; -1 where it is not in there, or another CPU was faster. */
static __always_inline int ln_wait_end(const struct ln_late *late)
{
	if (bpf_map_delete_elem(&ln_waiting, &late->key))
		return -1;
	__sync_fetch_and_add(&ln_waiting_count, -1);
	return 0;
}

/* Has pacer send the saved packet; -1 where pacer is too far behind. */
static __always_inline int ln_copy(struct ln_stage_scratch *scratch, const struct ln_slot *slot, __u32 verdict)
{
	struct ln_late *late = &scratch->late;
	__u32 size = late->size;

	late->workload = slot->workload;
	late->verdict = verdict;
	late->until = 0;
	ln_opaque(size);
	if (size > LN_LATE_BYTES)
		return -1;
	return bpf_ringbuf_output(&ln_copies, late, LN_LATE_HEAD + size, 0) ? -1 : 0;
}

#endif
