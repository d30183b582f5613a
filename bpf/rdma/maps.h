/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of RDMA. */
#ifndef LN_RDMA_MAPS_H
#define LN_RDMA_MAPS_H

#include "../maps.h"

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
	__u32 at; /* offset of the first of them */
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

struct ln_rdma_scratch {
	struct ln_roce roce;
	__u8 chunk[256]; /* of a packet in several fragments */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_rdma_scratch);
} ln_rdma_scratchpads SEC(".maps");

#endif
