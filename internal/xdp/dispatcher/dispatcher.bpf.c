// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * The program of an interface that several XDP programs share: it calls each, in the place of a function. Its form is agreed on by all that load
 * XDP programs for such interfaces (lib/libxdp/protocol.org of xdp-tools).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum protocol {
	DISPATCHER_MAGIC = 236,
	DISPATCHER_VERSION = 2,
	DISPATCHER_PROGRAMS = 10,
	DISPATCHER_NO_PROGRAM = 31, /* what a place without a program returns */
};

struct dispatcher_config {
	__u8 magic;
	__u8 dispatcher_version;
	__u8 num_progs_enabled;
	__u8 is_xdp_frags;
	__u32 chain_call_actions[DISPATCHER_PROGRAMS]; /* bits of actions after which the next program runs */
	__u32 run_prios[DISPATCHER_PROGRAMS];
	__u32 program_flags[DISPATCHER_PROGRAMS];
};

/* The only map, by which others know the dispatcher and its programs. */
const volatile struct dispatcher_config config;

/*
 * A place for a program. Volatile: the compiler must not decide what it returns. Since Linux 6.13, a program that may change a packet's bounds
 * takes a place only if what was there may, too (bpf_check_attach_target() in kernel/bpf/verifier.c); so this may, and never does.
 */
#define PLACE(n) \
	__attribute__((noinline)) int prog##n(struct xdp_md *ctx) \
	{ \
		volatile int action = DISPATCHER_NO_PROGRAM; \
\
		if (!ctx) \
			return XDP_ABORTED; \
		if (action != DISPATCHER_NO_PROGRAM) \
			bpf_xdp_adjust_meta(ctx, 0); \
		return action; \
	}

#define CALL(n) \
	do { \
		int action; \
\
		if (config.num_progs_enabled <= n) \
			return XDP_PASS; \
		action = prog##n(ctx); \
		if (!(config.chain_call_actions[n] & 1U << (action & 31))) \
			return action; \
	} while (0)

PLACE(0)
PLACE(1)
PLACE(2)
PLACE(3)
PLACE(4)
PLACE(5)
PLACE(6)
PLACE(7)
PLACE(8)
PLACE(9)

SEC("xdp")
int xdp_dispatcher(struct xdp_md *ctx)
{
	CALL(0);
	CALL(1);
	CALL(2);
	CALL(3);
	CALL(4);
	CALL(5);
	CALL(6);
	CALL(7);
	CALL(8);
	CALL(9);
	return XDP_PASS;
}

/* Named here so that BTF, and the Go types made from it, have it. */
const enum protocol *protocol_ __attribute__((unused));

char LICENSE[] SEC("license") = "Dual BSD/GPL";
