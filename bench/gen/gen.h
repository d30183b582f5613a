/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the load generator's two programs and its Go side share. */
#ifndef LN_GEN_H
#define LN_GEN_H

#include <linux/types.h>

enum ln_gen_limit {
	LN_GEN_CPUS = 64, /* a power of two */
	LN_GEN_FRAME = 1514, /* longest frame */
	LN_GEN_TEMPLATES = 1 << 20, /* bytes of all templates together, a power of two */
	LN_GEN_PORT = 16384, /* first port of the clients: below those that the kernel gives to sockets */
	LN_GEN_PORTS = 1024, /* a power of two */
	LN_GEN_WORKLOADS = 65536, /* counted apart by the low half of their IDs */
	LN_GEN_ASKED = 65536, /* requests to memcached of one CPU that may be under way, a power of two */
	LN_GEN_SET = 1U << 31, /* of a step of a trace: a SET; otherwise a GET */
	LN_GEN_TENANTS = 8, /* servers that one load is for */
	LN_GEN_WORD = 8, /* bytes of a key that its number does not name */
	LN_GEN_PARTS = 64, /* buckets for each doubling of a latency, a power of two */
	LN_GEN_BUCKETS = 30 * LN_GEN_PARTS, /* up to 68 s; what takes longer is in the last */
};

/* The kinds of memcached's replies. */
enum ln_gen_reply {
	LN_GEN_SERVED, /* a value, from the server */
	LN_GEN_CACHED, /* a value, from the NIC */
	LN_GEN_STORED, /* to a SET */
	LN_GEN_REPLIES,
};

/* One CPU's sending, on a cache line of its own. Go writes all of it before a run and reads it after. */
struct ln_gen_sender {
	__u64 sent;
	__u64 next_id;
	__u64 done; /* frames of the schedule that are behind: sent, in the budget or skipped */
	__u64 skipped; /* frames that were due and not sent, because the CPU fell behind */
	__u32 at; /* offset of the next template */
	__u32 tick; /* calls since the clock was read */
	__u32 budget; /* frames due and not yet sent */
	__u32 ready; /* 1: the program runs on this CPU */
	__u32 step; /* number of the next step of the trace */
	__u32 tenant; /* whose the next request is */
	__u32 pad[2];
};

/* What came back to one CPU. */
struct ln_gen_count {
	__u64 responses; /* with status ok */
	__u64 failures; /* with another status */
	__u64 errors;
	__u64 others; /* acknowledgements, and what is not λ-RPC */
	__u64 bytes; /* of message in the responses */
	__u64 replies[LN_GEN_REPLIES]; /* of the responses, those of memcached by their kind */
	__u64 tenants[LN_GEN_TENANTS]; /* and by whose they are */
};

/* A request to memcached whose reply has not come. */
struct ln_gen_asked {
	__u64 sent_ns; /* 0: none */
	__u32 id; /* of the request and, in the upper 6 bits, of its tenant */
	__u32 step; /* of the trace */
};

#endif
