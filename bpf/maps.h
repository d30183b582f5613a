/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of one NIC program. All are pinned, so that the data path outlives the daemon; sizes are set by the loader. */
#ifndef LN_MAPS_H
#define LN_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "rpc_wire.h"

/* The lambdas' programs, by slot. Slot 0 stays empty. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} ln_programs SEC(".maps");

/* Parts of the NIC program that end the root's work on a packet. */
enum ln_part { LN_PART_RDMA = 0, LN_PART_MAX };

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, LN_PART_MAX);
	__type(key, __u32);
	__type(value, __u32);
} ln_parts SEC(".maps");

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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct ln_service);
} ln_services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct ln_bucket);
} ln_messages SEC(".maps");

/* Requests that are executed at most once (once.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LN_ONCE_BUCKETS);
	__type(key, __u32);
	__type(value, struct ln_once_bucket);
} ln_onces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_grants);
} ln_granting SEC(".maps");

/* pacer maps this one and the next two. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LN_MAX_CALLS + LN_MAX_RAW_CALLS);
	__type(key, __u32);
	__type(value, struct ln_call);
} ln_calls SEC(".maps");

/* Which record each of the last calls has, by the low bits of the call's number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LN_MAX_CALLS);
	__type(key, __u32);
	__type(value, __u64);
} ln_call_log SEC(".maps");

/* The number of the next call. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ln_next_call SEC(".maps");

/* Requests to services that are sent again where no answer comes, by the index of the call's record. A call without has one try. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LN_MAX_RETAINED);
	__type(key, __u32);
	__type(value, struct ln_sent);
} ln_retained SEC(".maps");

/* Where such a request is put together: it is too long for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_sent);
} ln_sending SEC(".maps");

/* Shared with the lambdas. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_request);
} ln_requests SEC(".maps");

/* Shared with match stages that clone. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_pass);
} ln_passes SEC(".maps");

/* Packets that wait for the host, by their keys (late.h). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LN_WAITING_MAX);
	__type(key, __u64);
	__type(value, struct ln_late);
} ln_waiting SEC(".maps");

/* Packets whose clones went first, for pacer to send: struct ln_late, its bytes cut off behind the packet's end. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LN_COPIES_BYTES);
} ln_copies SEC(".maps");

/* Packets on their way to the host's stack that come by here once more, by their digests (late.h). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, __u32);
} ln_handed SEC(".maps");

/* What a packet may do with its message's record. */
enum ln_claim {
	LN_CLAIM_NONE, /* name it: a pull */
	LN_CLAIM_FREE, /* forget it, as the client will not ask again */
	LN_CLAIM_ADD, /* add to it */
	LN_CLAIM_BEGIN, /* begin it, if there is none */
};

/* What a packet says of its message, and where the record is (message.h). */
struct ln_place {
	__u64 request;
	__u64 now;
	__u32 workload;
	__u32 slot; /* in: the revision for a new message; out: the revision that began it */
	__u32 revision; /* out: in that slot then */
	__u32 index;
	__u32 count;
	__u32 message_len;
	__u32 length;
	__u32 bucket; /* out: among the NIC's */
	__u32 way; /* out */
	__u32 record; /* out: among the lambda's */
	__u32 reply_len; /* out, when done */
	__u32 status; /* out, when done */
	__u32 claim; /* in: enum ln_claim */
	__u32 deadline_us; /* in: how long the client will wait from now; 0: it does not say */
	__u32 once; /* in: at most one run */
	__u32 error; /* when done: what is remembered in place of a reply */
	__u32 fault; /* and which */
};

/* Whom a match stage may answer without a packet of his at hand: who asked a service through it. */
struct ln_asker {
	__u8 peer_addr[16];
	__u8 own_addr[16];
	__be16 peer_port;
	__be16 own_port;
	__u32 workload;
};

struct ln_question {
	struct ln_flow flow;
	__u8 service_addr[16];
	__u64 until; /* bpf_ktime_get_ns() */
	__be16 service_port;
	__be16 asked_from; /* the port that the query left by */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct ln_asker);
	__type(value, struct ln_question);
} ln_questions SEC(".maps");

/* The host writes single fields of these two, in mapped memory. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LN_MAX_QPS);
	__type(key, __u32);
	__type(value, struct ln_qp);
} ln_qps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LN_MAX_REGIONS);
	__type(key, __u32);
	__type(value, struct ln_region);
} ln_regions SEC(".maps");

/* What the transport headers of a RoCEv2 packet say, and where its payload is (roce.h). */
struct ln_roce {
	__u32 at; /* of the first of them */
	__u32 op;
	__u32 service;
	__u32 qpn;
	__u32 psn;
	__u32 ack; /* 1: it asks for an acknowledgement */
	__u64 va;
	__u32 key;
	__u32 dma_len;
	__u32 imm;
	__u32 payload;
	__u32 length; /* of the payload */
	__u32 malformed;
};

/* The root's own view of the packet at hand, which no lambda can reach. */
struct ln_scratch {
	struct ln_flow flow;
	struct ln_flow sent; /* what a match stage made of it */
	struct ln_question question;
	struct ln_place place;
	struct ln_roce roce;
	__u8 chunk[256]; /* of a packet in several parts */
	__u32 tick; /* runs so far, for sampling */
	__u32 slot; /* of the revision that runs */
	__u32 came; /* of a match stage's packet: as in struct ln_late */
	__u32 came_l3;
	__u32 instance; /* of its run: as in struct ln_pass */
	__u32 out; /* the interface that it leaves by */
	__u64 until; /* it waits no longer than this, if it waited already; 0 else */
	struct ln_late late;
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

/* How many packets are in ln_waiting, and in ln_handed. */
volatile __u32 ln_waiting_count;
volatile __u32 ln_handed_count;

volatile __u8 ln_generic; /* 1: attached in generic mode; set when that is known */

/*
 * A function of its own to the verifier, which proves it once for any arguments rather than along every path that leads
 * to it. Its pointers may be NULL, as far as the verifier knows.
 */
#define LN_GLOBAL __attribute__((noinline))

/* Hides a value's history from the optimiser, so that the bound which is checked is the one which the verifier sees. */
#define ln_opaque(var) asm volatile("" : "+r"(var))

/*
 * Whether 1 <= len <= max. Clang would make one comparison of the two, of len - 1, from which the verifier of Linux 6.18.15 and
 * earlier does not learn that len is not 0.
 */
#define ln_length_fits(len, max) \
	(({ \
		 ln_opaque(len); \
		 (len) != 0; \
	 }) && \
	 ({ \
		 ln_opaque(len); \
		 (len) <= (max); \
	 }))

static __always_inline void ln_count(__u32 counter)
{
	__u64 *n = bpf_map_lookup_elem(&ln_counters, &counter);

	if (n)
		(*n)++;
}

#endif
