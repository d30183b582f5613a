// SPDX-License-Identifier: Apache-2.0
/*
 * A lambda that faults, divides by zero or does not return costs its client an error, not the process: a jump leaves
 * its run. What the NIC's verifier rules out beforehand is caught here when it happens.
 *
 * A thread, the watchdog, ends runs that take longer than the spec's limits.time. Only time on a CPU counts: a run that
 * had to wait for one did nothing wrong. While no lambda runs the watchdog rests, and the next run wakes it.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

enum {
	WATCH_US = 5000,
	WATCH_QUIET = 20, /* rounds without a run before the watchdog rests */
	SIGNAL_STACK = 64 << 10,
	STACK_END = 1 << 20, /* an access at most so far below the stack is by a frame that did not fit */
};

#define SECOND_NS 1000000000ULL

/*
 * For page faults and soft interrupts. The kernel counts the time of a soft interrupt as the interrupted thread's, unless it has
 * CONFIG_IRQ_TIME_ACCOUNTING, which Debian's lacks. They take 10 ms at a time: two ticks of 4 ms for packets
 * (net.core.netdev_budget_usecs), and 2 ms in all before they leave the rest to a thread (MAX_SOFTIRQ_TIME of kernel/softirq.c).
 */
#define SLACK_NS 20000000ULL

static __thread struct guard *self;

static struct guard *_Atomic guards[MAX_THREADS + 1]; /* of all threads that run the lambda */
static atomic_uint guarded;

static atomic_bool resting;
static sem_t wake;

static bool running(void)
{
	return self && atomic_load_explicit(&self->run, memory_order_relaxed) & 1;
}

/* The calling thread's guard, found even if the lambda overwrote the thread's own variables. */
static struct guard *running_guard(void)
{
	pid_t tid = syscall(SYS_gettid);
	struct guard *g;

	for (unsigned int i = 0; i <= MAX_THREADS; i++) {
		g = atomic_load(&guards[i]);
		if (g && g->tid == tid)
			return g;
	}
	return NULL;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	struct guard *g = running_guard();

	(void)context;
	/* If self was overwritten, so was what the C library keeps beside it and needs for the jump. */
	if (sig != SIGABRT && g && g == self && running()) {
		g->deep = g->stack - (uintptr_t)info->si_addr <= STACK_END;
		siglongjmp(g->escape, sig);
	}
	/* The fault is ours, or a run overwrote the stack: let it kill the process, which the supervisor starts again. */
	if (g && g->asks)
		reply_last(g->asks);
	signal(sig, SIG_DFL);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
}

static void on_overdue(int sig)
{
	if (running() && atomic_load(&self->overdue) == atomic_load(&self->run))
		siglongjmp(self->escape, sig);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SECOND_NS + ts.tv_nsec;
}

/* Ends a run that takes too long. True if anything ran since the last look. A run that waits for a CPU gets a second more. */
static bool watch_one(struct guard *g)
{
	uint64_t run = atomic_load(&g->run);

	if (run != g->seen) {
		g->seen = run;
		if (run & 1) {
			g->seen_ns = clock_ns(CLOCK_MONOTONIC);
			g->seen_cpu_ns = clock_ns(g->cpu_clock);
		}
		return true;
	}
	if (!(run & 1))
		return false;
	if (clock_ns(g->cpu_clock) - g->seen_cpu_ns >= g->limit_ns ||
	    clock_ns(CLOCK_MONOTONIC) - g->seen_ns >= g->limit_ns + SECOND_NS) {
		atomic_store(&g->overdue, run);
		pthread_kill(g->thread, SIGURG);
	}
	return true;
}

static bool watch_all(void)
{
	bool any = false;
	struct guard *g;

	for (unsigned int i = 0; i <= MAX_THREADS; i++) {
		g = atomic_load(&guards[i]);
		if (g && watch_one(g))
			any = true;
	}
	return any;
}

/*
 * Waits for a run. A thread that begins a run notes that and checks whether we rest, without a barrier, which would cost each run
 * some nanoseconds. Instead membarrier(2) makes all threads pass a barrier here: either the thread sees us rest, or we see its run.
 */
static void rest(void)
{
	atomic_store(&resting, true);
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) && !watch_all()) {
		while (sem_wait(&wake))
			;
	} else if (!atomic_exchange(&resting, false)) {
		while (sem_wait(&wake)) /* it was woken already */
			;
	}
}

static void *watch(void *unused)
{
	int quiet = 0;

	for (;;) {
		usleep(WATCH_US);
		quiet = watch_all() ? 0 : quiet + 1;
		if (quiet == WATCH_QUIET) {
			rest();
			quiet = 0;
		}
	}
	return unused;
}

/* For the calling thread, and for those that call guard_thread() later. */
int guard_init(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	struct sigaction sa = { .sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO };
	pthread_t thread;

	/* SIGURG is blocked in handlers: more of them would pile up on the stack of one that jumps. resume() unblocks it. */
	sigaddset(&sa.sa_mask, SIGURG);
	sa.sa_sigaction = on_fault;
	for (unsigned int i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (sigaction(faults[i], &sa, NULL))
			return -errno;
	}
	sa.sa_flags = SA_ONSTACK | SA_RESTART;
	sa.sa_handler = on_overdue;
	if (sigaction(SIGURG, &sa, NULL))
		return -errno;
	if (guard_thread(&host.guard, SECOND_NS) || sem_init(&wake, 0, 0) ||
	    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
		return -errno;
	return -pthread_create(&thread, NULL, watch, NULL);
}

/* A lambda may have used up its stack: the handlers need a stack of their own. A run may take limit_ns. */
int guard_thread(struct guard *g, uint64_t limit_ns)
{
	stack_t stack = { .ss_size = SIGNAL_STACK };
	pthread_attr_t attr;
	void *lowest;
	size_t size;

	self = g;
	if (pthread_getattr_np(pthread_self(), &attr))
		return -1;
	pthread_attr_getstack(&attr, &lowest, &size);
	pthread_attr_destroy(&attr);
	g->stack = (uintptr_t)lowest;
	g->thread = pthread_self();
	g->tid = syscall(SYS_gettid);
	g->limit_ns = limit_ns + SLACK_NS;
	if (pthread_getcpuclockid(g->thread, &g->cpu_clock))
		return -1;
	stack.ss_sp = malloc(stack.ss_size);
	if (!stack.ss_sp || sigaltstack(&stack, NULL))
		return -1;
	atomic_store(&guards[atomic_fetch_add(&guarded, 1)], g);
	return 0;
}

/* What a fault is called. */
const char *guard_reason(int fault)
{
	switch (fault) {
	case SIGSEGV:
		return "segmentation fault";
	case SIGBUS:
		return "bus error";
	case SIGFPE:
		return "division by zero";
	case SIGURG:
		return "ran longer than limits.time";
	}
	return "illegal instruction";
}

/* Which LN_FAULT_* a signal stands for. */
unsigned int guard_cause(const struct guard *g)
{
	switch (g->fault) {
	case SIGURG:
		return LN_FAULT_TIME;
	case SIGSEGV:
	case SIGBUS:
		return g->deep ? LN_FAULT_RECURSION : LN_FAULT_BOUNDS;
	case SIGFPE:
		return LN_FAULT_DIVISION;
	}
	return LN_FAULT_OWN; /* abort(): sdk/stdlib.h */
}

/* After a jump out of a handler: the run is over, and the watchdog may end another. */
static void resume(struct guard *g)
{
	sigset_t set;

	atomic_fetch_add(&g->run, 1); /* it is odd; the caller's copy of it cannot be trusted after a jump */
	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Runs the lambda. Returns its verdict, or LN_VERDICT_OF() the fault, whose signal it notes, if it had to be stopped. */
int guard_run(struct guard *g, lambda_entry *entry, struct lambda_headers *headers)
{
	uint64_t run = atomic_load_explicit(&g->run, memory_order_relaxed);
	int verdict;

	g->fault = 0;
	verdict = sigsetjmp(g->escape, 0);
	if (verdict) {
		resume(g);
		g->fault = verdict;
		return LN_VERDICT_OF(guard_cause(g));
	}
	atomic_store_explicit(&g->run, run + 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&resting, memory_order_relaxed) && atomic_exchange(&resting, false))
		sem_post(&wake);
	verdict = entry(headers);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&g->run, run + 2, memory_order_relaxed);
	return verdict;
}
