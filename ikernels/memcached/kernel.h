/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is read of the kernel's own records. Their layouts are taken from the running kernel (BPF CO-RE). */
#ifndef MC_KERNEL_H
#define MC_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define MC_CORE __attribute__((preserve_access_index))

enum mc_kernel {
	MC_IPPROTO_TCP = 6,
	MC_IPPROTO_UDP = 17,
	MC_TCP_ESTABLISHED = 1,
	MC_TCP_CLOSE = 7,
	MC_TCP_LISTEN = 10,
	MC_MSG_PEEK = 0x2,
	MC_MSG_TRUNC = 0x20,
	MC_MSG_ERRQUEUE = 0x2000,
	MC_RCV_SHUTDOWN = 1,
};

struct net {
	__u64 net_cookie;
} MC_CORE;

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__u16 skc_num; /* the local port */
	possible_net_t skc_net;
} MC_CORE;

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	__u8 sk_shutdown;
} MC_CORE;

struct tcp_sock {
	__u32 copied_seq;
} MC_CORE;

/* The registers of a process that is in a system call. */
struct pt_regs___x86 {
	unsigned long orig_ax, di, si, dx;
} MC_CORE;

struct pt_regs___arm64 {
	__u64 regs[31];
	__s32 syscallno;
} MC_CORE;

#endif
