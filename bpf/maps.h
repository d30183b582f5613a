/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that the root and its modules share; each module's own are in its maps.h. All are pinned, so that the data path
 * outlives the daemon; the loader sets sizes.
 */
#ifndef LN_MAPS_H
#define LN_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "namespaces.h"
#include "place.h"
#include "rpc_wire.h"
#include "sample.h"
#include "verifier.h"

/* The lambdas' programs, by slot. Slot 0 stays empty. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} ln_programs SEC(".maps");

/* Programs that the root hands packets over to. Each is in the bpf/NAME/NAME.bpf.c of its module. */
enum ln_module {
	LN_MODULE_MESSAGES,
	LN_MODULE_ONCE,
	LN_MODULE_CALLS,
	LN_MODULE_STAGE,
	LN_MODULE_RDMA,
	LN_MODULE_REGIONS,
	LN_MODULE_MAX,
};

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, LN_MODULE_MAX);
	__type(key, __u32);
	__type(value, __u32);
} ln_modules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct ln_slot);
} ln_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_addresses);
} ln_own SEC(".maps");

/* Dispatch words, by the low half of the workload ID; written by single stores to mapped memory. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LN_MAX_WORKLOADS);
	__type(key, __u32);
	__type(value, __u64);
} ln_dispatch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct ln_split);
} ln_splits SEC(".maps");

/* Shared with the lambdas. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_request);
} ln_requests SEC(".maps");

/* What a packet may do with its message's record. */
enum ln_claim {
	LN_CLAIM_NONE, /* find it only: a pull */
	LN_CLAIM_FREE, /* forget it, as the client will not ask again */
	LN_CLAIM_ADD, /* add to it */
	LN_CLAIM_BEGIN, /* begin it, if there is none */
};

/* What a packet says about its message, and where the record is (messages/message.h). */
struct ln_place {
	__u64 request;
	__u64 now;
	__u32 workload;
	__u32 slot; /* in: the revision for a new message; out: the revision that began it */
	__u32 revision; /* out: the one that was in that slot then */
	struct ln_part part;
	__u32 bucket; /* out: among all of the NIC's buckets */
	__u32 way; /* out */
	__u32 record; /* out: among the lambda's records */
	__u32 reply_len; /* out, when done */
	__u32 status; /* out, when done */
	__u32 claim; /* in: enum ln_claim */
	__u32 deadline_us; /* in: how long the client will wait from now; 0: it does not say */
	__u32 once; /* in: at most one run */
	__u32 error; /* when done: what is remembered in place of a reply */
	__u32 fault; /* when done: which fault, if that error is one */
};

/* The NIC program's own view of the packet at hand, which no lambda can reach. */
struct ln_scratch {
	struct ln_flow flow;
	struct ln_place place;
	struct ln_sampler sampler;
	__u32 slot; /* of the revision that runs */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_scratch);
} ln_scratchpads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct ln_stats);
} ln_slot_stats SEC(".maps");

/* By slot. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct ln_cost);
} ln_costs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LN_COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} ln_counters SEC(".maps");

/* Set by the loader, constant while the program is attached. */
const volatile __u8 ln_unknown_reply; /* 1: unknown workloads get an error reply; 0: they go to the host */
const volatile __u8 ln_verify_checksum; /* 1: requests with a wrong UDP checksum are dropped */
const volatile __u64 ln_secret; /* keys the hash of message records */
const volatile __u64 ln_call_key[2]; /* keys the numbers that calls are known by */

static __always_inline void ln_count(__u32 counter)
{
	__u64 *n = bpf_map_lookup_elem(&ln_counters, &counter);

	if (n)
		(*n)++;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What the tag at hand covers, and the tag. */
enum {
	LN_TAGGED_HEADER = 56,
	LN_TAGGED_WORDS = (LN_TAGGED_HEADER + LN_RPC_MAX_PAYLOAD) / 8,
};

struct ln_tagged {
	__u64 words[LN_TAGGED_WORDS];
	__u64 tag;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_tagged);
} ln_tagging SEC(".maps");

#endif
