// SPDX-License-Identifier: Apache-2.0
/*
 * A lambda that faults, divides by zero or does not come back costs its client an error, not the process: its run
 * is left by a jump. What the NIC's verifier rules out beforehand is caught here when it happens.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"

enum {
	WATCH_US = 250000, /* a spec allows a run one second at most (limits.time) */
	WATCH_ROUNDS = 4,
	SIGNAL_STACK = 64 << 10,
};

static __thread struct guard *self;

static struct guard *_Atomic guards[MAX_THREADS + 1]; /* of all threads that run the lambda */
static atomic_uint guarded;

static bool running(void)
{
	return self && atomic_load_explicit(&self->run, memory_order_relaxed) & 1;
}

static void on_fault(int sig)
{
	if (running())
		siglongjmp(self->escape, 1);
	/* Ours: let it kill the process, which the supervisor starts again. */
	signal(sig, SIG_DFL);
}

static void on_overdue(int sig)
{
	(void)sig;
	if (running() && atomic_load(&self->overdue) == atomic_load(&self->run))
		siglongjmp(self->escape, 1);
}

static void watch_one(struct guard *g)
{
	uint64_t run = atomic_load(&g->run);

	g->rounds = run & 1 && run == g->seen ? g->rounds + 1 : 0;
	g->seen = run;
	if (g->rounds < WATCH_ROUNDS)
		return;
	atomic_store(&g->overdue, run);
	pthread_kill(g->thread, SIGURG);
}

static void *watch(void *unused)
{
	struct guard *g;

	for (;;) {
		usleep(WATCH_US);
		for (unsigned int i = 0; i <= MAX_THREADS; i++) {
			g = atomic_load(&guards[i]);
			if (g)
				watch_one(g);
		}
	}
	return unused;
}

/* For the calling thread, and for those that call guard_thread() later. */
int guard_init(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	struct sigaction sa = { .sa_flags = SA_ONSTACK | SA_NODEFER };
	pthread_t thread;

	sa.sa_handler = on_fault;
	for (unsigned int i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (sigaction(faults[i], &sa, NULL))
			return -errno;
	}
	sa.sa_flags |= SA_RESTART;
	sa.sa_handler = on_overdue;
	if (sigaction(SIGURG, &sa, NULL))
		return -errno;
	if (guard_thread(&host.guard))
		return -errno;
	return -pthread_create(&thread, NULL, watch, NULL);
}

/* A lambda may have used up its stack: the handlers need one of their own. */
int guard_thread(struct guard *g)
{
	stack_t stack = { .ss_size = SIGNAL_STACK };

	self = g;
	g->thread = pthread_self();
	stack.ss_sp = malloc(stack.ss_size);
	if (!stack.ss_sp || sigaltstack(&stack, NULL))
		return -1;
	atomic_store(&guards[atomic_fetch_add(&guarded, 1)], g);
	return 0;
}

/* Runs the lambda; what became of it, LN_VERDICT_FAULT where it had to be stopped. */
int guard_run(struct guard *g, lambda_entry *entry, struct lambda_headers *headers)
{
	uint64_t run = atomic_load_explicit(&g->run, memory_order_relaxed);
	int verdict;

	if (sigsetjmp(g->escape, 0)) {
		/* run and headers are not to be trusted after the jump; the counter is odd. */
		atomic_fetch_add(&g->run, 1);
		return LN_VERDICT_FAULT;
	}
	atomic_store_explicit(&g->run, run + 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	verdict = entry(headers);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&g->run, run + 2, memory_order_relaxed);
	return verdict;
}
