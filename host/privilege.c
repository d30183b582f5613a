// SPDX-License-Identifier: Apache-2.0
/* Takes privileges away that a process does not need to run somebody's function. */
#include <err.h>
#include <errno.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host.h"

/* Bytes of the process's own data, most of it reserved for messages and calls. */
static uint64_t own_memory(void)
{
	uint64_t record = host.mode == LN_MODE_ASSEMBLE ? host.message_max + LAMBDA_WINDOW : 0;
	uint64_t calls = host.service_count ? LN_MAX_CALLS * sizeof(struct call) : 0;
	uint64_t worker =
		sizeof(struct worker) + SENDS * BUFFER + BATCH * DATAGRAM + calls + (16 << 20); /* stack, arena */
	uint64_t once = LN_ONCE_BUCKETS * LN_ONCE_WAYS * (sizeof(struct ln_once) + LN_ONCE_ANSWER);
	uint64_t retained = host.service_count ? LN_MAX_RETAINED * LN_SENT_MAX : 0;

	record += LN_MAX_FRAGMENTS / 8 + sizeof(struct message);
	return (64 << 20) + once + retained + host.in_flight * record + host.threads * worker;
}

static int limit_memory(void)
{
	/* The revision that serves, those that still answer pulls, and one that is coming. */
	rlim_t bytes = own_memory() + (LN_MAX_PREV + 2) * host.memory;
	struct rlimit limit = { bytes, bytes };

	if (!host.memory || SANITIZED) /* the sanitizer's shadow alone is terabytes */
		return 0;
	return setrlimit(RLIMIT_DATA, &limit) ? -errno : 0;
}

/*
 * Each workload has a user of its own, which for a moment has two processes: this one and the one that it replaces, which
 * may have more workers. Each process also has a thread that reads commands, and the watchdog.
 */
static int limit_tasks(void)
{
	rlim_t tasks = host.threads + 2 + MAX_THREADS + 2;
	struct rlimit limit = { tasks, tasks };

	return setrlimit(RLIMIT_NPROC, &limit) ? -errno : 0;
}

/* Each call of protocol raw needs a socket. If the limit is lower, some calls are refused as busy. */
static void allow_sockets(void)
{
	struct rlimit limit;

	if (!host.service_count || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur += LN_MAX_RAW_CALLS;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int drop_user(uid_t uid)
{
	int err;

	if (geteuid())
		return 0;
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)) {
		err = -errno;
		warnx("cannot become user %u, and no lambda runs as root: start it where this user exists", uid);
		return err;
	}
	return limit_tasks();
}

int privilege_drop(unsigned int uid)
{
	static const struct rlimit none = { 0, 0 };
	int err = drop_user(uid);

	allow_sockets();
	if (err)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    setrlimit(RLIMIT_CORE, &none))
		return -errno;
	return limit_memory();
}
