/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of the match stage. */
#ifndef LN_STAGE_MAPS_H
#define LN_STAGE_MAPS_H

#include "../maps.h"

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

/* Packets whose clones went first, for pacer to send: struct ln_late, cut off at the packet's end. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LN_COPIES_BYTES);
} ln_copies SEC(".maps");

/* A client that asked a service through a match stage: the stage may send it the service's answer. */
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

/* The stage's own view of the packet at hand, which no lambda can reach. */
struct ln_stage_scratch {
	struct ln_flow flow;
	struct ln_flow sent; /* of the packet that the stage made */
	struct ln_question question;
	__u32 slot; /* of the revision that runs */
	__u32 came; /* as in struct ln_late */
	__u32 came_l3;
	__u32 instance; /* of its run: as in struct ln_pass */
	__u32 out; /* the interface that it leaves by */
	__u64 until; /* if it waited already, when its wait times out; else 0 */
	struct ln_late late;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_stage_scratch);
} ln_stage_scratchpads SEC(".maps");

#endif
