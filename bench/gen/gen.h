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
	__u64 pad[2];
};

/* What came back to one CPU. */
struct ln_gen_count {
	__u64 responses; /* with status ok */
	__u64 failures; /* with another status */
	__u64 errors;
	__u64 others; /* acknowledgements, and what is not λ-RPC */
	__u64 bytes; /* of message in the responses */
	__u64 pad[3];
};

#endif
