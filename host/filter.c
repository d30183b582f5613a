// SPDX-License-Identifier: Apache-2.0
/*
 * The system calls that a process and its lambda keep once it is set up: to receive and answer, to load revisions, to hand state over,
 * to run its existing threads. It may start no process or thread, as these would use up the limit of the process that replaces it.
 * If it has services to call, it may open sockets, for UDP alone (Documentation/userspace-api/seccomp_filter.rst). To whom it may send is for
 * a fence to say (internal/backend/process/fence).
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

static const int allowed[] = {
#ifdef SYS_open /* only old architectures have these calls */
	SYS_poll, SYS_open, SYS_stat, SYS_unlink, SYS_readlink,
#endif
	/* packets, and commands */
	SYS_recvmmsg, SYS_sendmmsg, SYS_recvmsg, SYS_sendmsg, SYS_recvfrom, SYS_sendto, SYS_ppoll, SYS_accept4,
	SYS_setsockopt,
	/* shared libraries and state, as user and directory permit */
	SYS_openat, SYS_close, SYS_read, SYS_write, SYS_writev, SYS_pread64, SYS_lseek, SYS_fstat, SYS_newfstatat,
	SYS_ftruncate, SYS_unlinkat, SYS_readlinkat,
	/* memory */
	SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_getrandom,
	/* signals and time */
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall, SYS_clock_gettime,
	SYS_clock_nanosleep, SYS_nanosleep,
	/* threads */
	SYS_futex, SYS_set_robust_list, SYS_rseq, SYS_exit, SYS_exit_group, SYS_sched_setaffinity,
	SYS_sched_getaffinity, SYS_sched_yield, SYS_getcpu, SYS_getpid, SYS_gettid, SYS_tgkill, SYS_membarrier
};

static const int calling[] = {
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
	SYS_connect, SYS_epoll_ctl, SYS_epoll_pwait
};

enum { ALLOWED = sizeof(allowed) / sizeof(allowed[0]), CALLING = sizeof(calling) / sizeof(calling[0]), FIXED = 14 };

/* For all existing threads. */
int filter_install(void)
{
	struct sock_filter code[FIXED + 2 * (ALLOWED + CALLING)], *at = code;
	struct sock_fprog program = { .filter = code };
	long refused;

#define EMIT(...) (*at++ = (struct sock_filter)__VA_ARGS__)
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define UNLESS(op, value) BPF_JUMP(BPF_JMP | (op) | BPF_K, value, 0, 1) /* skip what follows */
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
	EMIT(FIELD(arch));
	EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
	EMIT(RETURN(SECCOMP_RET_KILL_PROCESS));
	EMIT(FIELD(nr));
	for (int i = 0; i < ALLOWED; i++) {
		EMIT(UNLESS(BPF_JEQ, allowed[i]));
		EMIT(RETURN(SECCOMP_RET_ALLOW));
	}
	for (int i = 0; host.service_count && i < CALLING; i++) {
		EMIT(UNLESS(BPF_JEQ, calling[i]));
		EMIT(RETURN(SECCOMP_RET_ALLOW));
	}
	if (host.service_count) { /* a socket for UDP, as connect_to() opens it (call.c) */
		EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 8));
		EMIT(FIELD(args[0]));
		EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0));
		EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 5));
		EMIT(FIELD(args[1]));
		EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM | SOCK_CLOEXEC, 0, 3));
		EMIT(FIELD(args[2]));
		EMIT(UNLESS(BPF_JEQ, 0));
		EMIT(RETURN(SECCOMP_RET_ALLOW));
	}
	EMIT(RETURN(SECCOMP_RET_ERRNO | EPERM));
	program.len = at - code;
	if (SANITIZED) /* a sanitizer needs more system calls */
		return 0;
	refused = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	return refused < 0 ? -errno : refused ? -EPERM : 0; /* positive: a thread that has another filter */
}
