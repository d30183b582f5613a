// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* A packet's passes through the match stage: once, a second time as its clone, and again after it waited for the host. */
#include "../match.h"
#include "../run.h"
#include "late.h"

/* Counts a stage's return value that is not an XDP action. */
static __always_inline void ln_stage_fault(struct ln_stats *stats, int verdict)
{
	stats->faults++;
	stats->faults_by[ln_fault_of(verdict) & (LN_FAULTS - 1)]++;
}

/* Lets a packet leave, if that is allowed. Returns the XDP action. */
LN_GLOBAL int ln_stage_leave(struct xdp_md *ctx, struct ln_stage_scratch *scratch, const struct ln_slot *slot,
			     int verdict)
{
	struct ln_stats *stats;
	int action = XDP_DROP;
	__u32 index;

	if (!scratch || !slot)
		return XDP_DROP;
	index = scratch->slot;
	stats = bpf_map_lookup_elem(&ln_slot_stats, &index);
	if (!stats)
		return XDP_DROP;
	if (verdict == XDP_TX)
		action = ln_stage_send(ctx, scratch, slot);
	else if (verdict == XDP_PASS)
		action = ln_stage_pass(ctx, scratch);
	if (action == XDP_TX || action == XDP_REDIRECT) {
		stats->replies++;
		stats->bytes_out += bpf_xdp_get_buff_len(ctx);
	} else if (action == XDP_DROP) {
		stats->drops++;
		if (verdict != XDP_DROP)
			ln_stage_fault(stats, verdict);
		if (verdict == XDP_TX || verdict == XDP_PASS)
			ln_count(LN_COUNT_ASTRAY);
	}
	return action;
}

/* Runs the stage on the packet at hand. Where the same packet waits, this one takes its place. */
static __always_inline int ln_stage_run(struct xdp_md *ctx, struct ln_stage_scratch *scratch)
{
	if (ln_waiting_count && !ln_late_save(ctx, scratch))
		ln_wait_end(&scratch->late);
	return run_lambda(ctx, scratch->slot);
}

/* The hand-over to a stage that clones; NULL for others. */
static __always_inline struct ln_pass *ln_stage_hand_over(const struct ln_slot *slot)
{
	__u32 zero = 0;
	struct ln_pass *pass = bpf_map_lookup_elem(&ln_passes, &zero);

	return slot->clones ? pass : NULL;
}

/* Parks the packet at hand; if it is a clone, with its metadata. */
static __noinline int ln_stage_wait(struct xdp_md *ctx, struct ln_stage_scratch *scratch, const struct ln_slot *slot)
{
	__u32 index = scratch->slot;
	struct ln_stats *stats = bpf_map_lookup_elem(&ln_slot_stats, &index);
	const struct ln_pass *pass = ln_stage_hand_over(slot);
	int saved = !ln_late_save(ctx, scratch);

	if (!saved)
		ln_count(LN_COUNT_BUSY);
	if (pass)
		scratch->late.pass = *pass;
	scratch->late.pass.instance = scratch->instance;
	if ((!saved || ln_wait_begin(scratch, slot)) && stats)
		stats->drops++;
	return XDP_DROP;
}

/* Turns the packet at hand into its clone and runs the stage on that. Returns the XDP action of the one that leaves now. */
static __always_inline int ln_stage_clone(struct xdp_md *ctx, struct ln_stage_scratch *scratch,
					  const struct ln_slot *slot, struct ln_pass *pass, int verdict)
{
	__u32 index = scratch->slot;
	struct ln_stats *stats = bpf_map_lookup_elem(&ln_slot_stats, &index);
	int again, saved;

	if (!stats)
		return XDP_DROP;
	scratch->instance = pass->instance = 1;
	saved = !ln_late_save(ctx, scratch);
	again = ln_stage_run(ctx, scratch);
	if (again == XDP_TX || again == XDP_PASS) {
		if (!saved || ln_copy(scratch, slot, verdict)) {
			ln_count(LN_COUNT_COPIES);
			stats->drops++;
		}
		return ln_stage_leave(ctx, scratch, slot, again);
	}
	if (again == LN_STAGE_WAIT)
		ln_stage_wait(ctx, scratch, slot);
	else if (again != XDP_DROP)
		ln_stage_fault(stats, again);
	/* A stage writes to a packet only at the end, so that this one is still as it was. */
	return ln_stage_leave(ctx, scratch, slot, verdict);
}

/* One pass of a packet, and its clone's. Returns the XDP action; LN_VERDICT_EMPTY where there is no stage. */
static __noinline int ln_stage_serve(struct xdp_md *ctx, struct ln_stage_scratch *scratch, const struct ln_slot *slot)
{
	struct ln_pass *pass = ln_stage_hand_over(slot);
	int verdict;

	if (pass) {
		pass->instance = scratch->instance;
		pass->clone = 0;
	}
	verdict = ln_stage_run(ctx, scratch);
	if (verdict == LN_VERDICT_EMPTY)
		return verdict;
	if (verdict == LN_STAGE_WAIT)
		return ln_stage_wait(ctx, scratch, slot);
	/* A clone's clone would go round for ever. */
	if (pass && pass->clone && !scratch->instance && (verdict == XDP_TX || verdict == XDP_PASS))
		return ln_stage_clone(ctx, scratch, slot, pass, verdict);
	return ln_stage_leave(ctx, scratch, slot, verdict);
}

/* A packet that waited: it runs once more, or its wait timed out. slot is NULL if its stage is gone. */
static __always_inline int ln_wait_over(struct xdp_md *ctx, struct ln_stage_scratch *scratch,
					const struct ln_slot *slot)
{
	__u32 zero = 0, index = scratch->slot;
	struct ln_pass *pass = bpf_map_lookup_elem(&ln_passes, &zero);
	struct ln_stats *stats = bpf_map_lookup_elem(&ln_slot_stats, &index);
	struct ln_late *late = &scratch->late;

	if (!pass || !stats || ln_wait_end(late))
		return XDP_DROP;
	if (!slot || bpf_ktime_get_ns() > late->until) {
		ln_count(LN_COUNT_TIMEOUTS);
		if (slot)
			stats->drops++;
		return XDP_DROP;
	}
	*pass = late->pass;
	scratch->until = late->until;
	return ln_stage_serve(ctx, scratch, slot);
}

/* Writes the index of the interface that the packet leaves by before it, in 32 bits. */
static __always_inline int ln_stage_tell(struct xdp_md *ctx, const struct ln_stage_scratch *scratch, int action)
{
	void *data, *end;

	if (action != XDP_TX && action != XDP_REDIRECT && action != XDP_PASS)
		return XDP_DROP;
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(scratch->out)))
		return XDP_ABORTED;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + sizeof(scratch->out) > end)
		return XDP_ABORTED;
	*(__u32 *)data = scratch->out;
	return action;
}

/*
 * A datagram that no workload ID selects goes to the match stage, if there is one. The stage sees only plain UDP, so that a tenant's
 * program cannot cut the host off from its link, and no packets that this host only forwards.
 */
SEC("xdp.frags")
int ln_stage_module(struct xdp_md *ctx)
{
	__u32 zero = 0, index = ln_match_stage();
	struct ln_stats *stats = bpf_map_lookup_elem(&ln_slot_stats, &index);
	struct ln_stage_scratch *scratch = bpf_map_lookup_elem(&ln_stage_scratchpads, &zero);
	const struct ln_slot *slot = bpf_map_lookup_elem(&ln_slots, &index);
	struct ln_packet pkt;
	int action;

	if (!index || !stats || !scratch || !slot || ln_parse(ctx, &pkt) || ln_save_flow(ctx, &pkt, &scratch->flow) ||
	    !ln_is_ours(&scratch->flow) || !ln_is_peer(&scratch->flow))
		return XDP_PASS;
	scratch->slot = index;
	scratch->came = bpf_xdp_get_buff_len(ctx) - pkt.l3;
	scratch->came_l3 = pkt.l4 - pkt.l3;
	scratch->instance = 0;
	scratch->until = 0;
	action = ln_stage_serve(ctx, scratch, slot);
	if (action == LN_VERDICT_EMPTY || action == XDP_PASS)
		return XDP_PASS;
	stats->requests++;
	stats->bytes_in += pkt.udp_len;
	return action;
}

/*
 * Has a packet go on (late.h), and gives pacer the action and the packet. pacer runs this program; it is attached nowhere, and the
 * root never hands over to it.
 */
SEC("xdp.frags")
int ln_later(struct xdp_md *ctx)
{
	__u32 zero = 0, index = ln_match_stage();
	struct ln_stage_scratch *scratch = bpf_map_lookup_elem(&ln_stage_scratchpads, &zero);
	const struct ln_slot *slot = bpf_map_lookup_elem(&ln_slots, &index);
	struct ln_late *late;
	int action;

	if (!scratch || !slot)
		return XDP_ABORTED;
	late = &scratch->late;
	if (bpf_xdp_load_bytes(ctx, 0, late, LN_LATE_HEAD) || bpf_xdp_adjust_head(ctx, LN_LATE_HEAD))
		return XDP_ABORTED;
	if (!index || slot->workload != late->workload)
		slot = NULL;
	scratch->flow = late->flow;
	scratch->slot = index;
	scratch->came = late->came;
	scratch->came_l3 = late->came_l3;
	scratch->instance = late->pass.instance;
	scratch->out = ctx->ingress_ifindex;
	if (late->verdict == LN_STAGE_WAIT) {
		action = ln_wait_over(ctx, scratch, slot);
	} else if (slot) {
		action = ln_stage_leave(ctx, scratch, slot, late->verdict);
	} else {
		ln_count(LN_COUNT_COPIES);
		action = XDP_DROP;
	}
	return ln_stage_tell(ctx, scratch, action);
}
