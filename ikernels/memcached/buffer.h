/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where in its memory a process has the bytes that it reads from a socket or sends: the arguments of the system call that it is in. The kernel's
 * tracepoints say how many bytes passed, and not where they are.
 */
#ifndef MC_BUFFER_H
#define MC_BUFFER_H

#include "kernel.h"

/* What the system call's second argument points to. */
enum mc_buffer_kind {
	MC_BUFFER_UNKNOWN, /* a system call of another kind, as splice or io_uring_enter */
	MC_BUFFER_BYTES,
	MC_BUFFER_VECTOR, /* of struct iovec; how many is the third argument */
	MC_BUFFER_MESSAGE, /* struct msghdr, which has such a vector */
};

struct mc_buffer {
	__u32 kind;
	__u64 address;
	__u64 count; /* the third argument: bytes, or elements of the vector */
};

/* The layouts that a process and the kernel have agreed on for good. */
struct mc_iovec {
	__u64 base, len;
};

struct mc_msghdr {
	__u64 name, name_len;
	__u64 vector, count;
};

static __always_inline enum mc_buffer_kind mc_kind_x86(unsigned long call)
{
	switch (call) {
	case 0: /* read */
	case 1: /* write */
	case 44: /* sendto */
	case 45: /* recvfrom */
		return MC_BUFFER_BYTES;
	case 19: /* readv */
	case 20: /* writev */
		return MC_BUFFER_VECTOR;
	case 46: /* sendmsg */
	case 47: /* recvmsg */
		return MC_BUFFER_MESSAGE;
	}
	return MC_BUFFER_UNKNOWN;
}

static __always_inline enum mc_buffer_kind mc_kind_arm64(__s32 call)
{
	switch (call) {
	case 63: /* read */
	case 64: /* write */
	case 206: /* sendto */
	case 207: /* recvfrom */
		return MC_BUFFER_BYTES;
	case 65: /* readv */
	case 66: /* writev */
		return MC_BUFFER_VECTOR;
	case 211: /* sendmsg */
	case 212: /* recvmsg */
		return MC_BUFFER_MESSAGE;
	}
	return MC_BUFFER_UNKNOWN;
}

/* Where the bytes of the system call at hand are; 0, or -1 where that cannot be said. */
static __always_inline int mc_find_buffer(struct mc_buffer *b)
{
	const void *regs = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct mc_msghdr message;

	if (bpf_core_field_exists(struct pt_regs___x86, orig_ax)) {
		const struct pt_regs___x86 *x86 = regs;

		b->kind = mc_kind_x86(x86->orig_ax);
		b->address = x86->si;
		b->count = x86->dx;
	} else {
		const struct pt_regs___arm64 *arm64 = regs;

		b->kind = mc_kind_arm64(arm64->syscallno);
		b->address = arm64->regs[1];
		b->count = arm64->regs[2];
	}
	if (b->kind != MC_BUFFER_MESSAGE)
		return b->kind == MC_BUFFER_UNKNOWN ? -1 : 0;
	if (bpf_probe_read_user(&message, sizeof(message), (void *)b->address))
		return -1;
	b->kind = MC_BUFFER_VECTOR;
	b->address = message.vector;
	b->count = message.count;
	return 0;
}

#endif
