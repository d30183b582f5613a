/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Regions: memory of a lambda that peers write to. The lambda's own program copies, as it alone can access its memory. */
#ifndef LN_RDMA_REGION_H
#define LN_RDMA_REGION_H

#include "../epilogue.h"
#include "maps.h"

#define LN_EXTEND_TRIES 16 /* a try fails when another queue pair extended the region meanwhile */

static __always_inline int ln_claim(__u32 *claim)
{
	return __sync_val_compare_and_swap(claim, 0, 1) == 0;
}

static __always_inline void ln_unclaim(__u32 *claim)
{
	__atomic_exchange_n(claim, 0, __ATOMIC_SEQ_CST);
}

static __always_inline struct ln_region *ln_region_of(__u32 key, __u32 workload)
{
	__u32 index = key & (LN_MAX_REGIONS - 1);
	struct ln_region *region = bpf_map_lookup_elem(&ln_regions, &index);

	if (!region || !key || *(volatile __u32 *)&region->key != key || region->workload != workload)
		return NULL;
	return region;
}

/* The slot of the revision that the region belongs to. */
static __always_inline const struct ln_slot *ln_region_slot(const struct ln_region *region)
{
	__u32 index = region->slot;
	const struct ln_slot *slot = bpf_map_lookup_elem(&ln_slots, &index);

	return slot && slot->workload == region->workload && slot->revision == region->revision ? slot : NULL;
}

/* Notes that bytes up to end came to the region. Queue pairs on other CPUs may write to it at the same time. */
static __always_inline void ln_region_extend(struct ln_region *region, __u32 end)
{
	__u32 extent = *(volatile __u32 *)&region->extent;

	for (int i = 0; i < LN_EXTEND_TRIES && extent < end; i++) {
		__u32 seen = __sync_val_compare_and_swap(&region->extent, extent, end);

		if (seen == extent)
			break;
		extent = seen;
	}
}

/* The end of the bytes that came since the lambda last ran on the region. Later bytes count for the next run. */
static __always_inline __u32 ln_region_take(struct ln_region *region)
{
	return __atomic_exchange_n(&region->extent, 0, __ATOMIC_SEQ_CST);
}

/* Describes a packet or message in the region to the lambda. */
static __always_inline void ln_region_describe(struct ln_request *req, const struct ln_region *region, __u32 offset,
					       __u32 length, __u32 message_len)
{
	req->match.workload = region->workload;
	req->match.revision = region->revision;
	req->match.request = region->base;
	req->match.record = region->record;
	req->match.method = region->method;
	req->match.offset = offset;
	req->match.payload_len = length;
	req->match.message_len = message_len;
	req->match.room = 0;
	req->match.window = 0;
	req->match.window_len = 0;
	req->match.repeat = 0;
	req->match.cookie[0] = 0;
	req->match.cookie[1] = 0;
	req->out_off = 0;
	req->out_len = 0;
	req->out_total = 0;
	req->out_status = 0;
}

/* Runs the lambda on the region's contents, and remembers the answer. The region is claimed. Returns the verdict. */
static __always_inline int ln_region_run(struct xdp_md *ctx, struct ln_scratch *scratch, struct ln_request *req,
					 struct ln_region *region)
{
	const struct ln_slot *slot;
	struct ln_stats *stats;
	__u32 index;
	int verdict;

	if (!scratch || !req || !region)
		return LN_VERDICT_FAULT;
	slot = ln_region_slot(region);
	if (!slot)
		return LN_VERDICT_FAULT;
	index = region->slot;
	scratch->slot = index;
	stats = bpf_map_lookup_elem(&ln_slot_stats, &index);
	if (stats)
		stats->requests++;
	req->match.event = slot->mode == LN_MODE_STREAM ? LAMBDA_EVENT_COMPLETE : LAMBDA_EVENT_REQUEST;
	req->step = LN_STEP_RUN;
	verdict = ln_run(ctx, scratch);
	region->runs++;
	region->answered = verdict == LN_VERDICT_FORWARD;
	region->code = verdict == LN_VERDICT_FORWARD ? 0 : LN_CODE_LAMBDA_FAULT;
	region->fault = region->code ? ln_fault_of(verdict) : 0;
	region->reply_len = req->out_total;
	region->status = req->out_status;
	return verdict;
}

#endif
