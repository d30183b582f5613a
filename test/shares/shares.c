// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * Plays shares of NIC time and bandwidth through on many CPUs: the NIC program's rules, built as ordinary C, and time that passes as the packets take it. It
 * reads who asks where, and writes what each got there; shares_test.go says how.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/quota.h"

#define CPUS 64
#define TENANTS 8
#define REFUSAL_NS 300
#define TICK_NS 1000
#define BEGIN_NS 1000000000
#define HALF_NS 150000000 /* shares settle, and then they are measured */

static struct {
	unsigned long long pace, run_ns, gap_ns, frame;
	unsigned long long cpus, later; /* as bits: where it asks at first, and in the second half */
	__u64 due[CPUS]; /* when its next packet comes, if it has a gap */
	unsigned long long packets[CPUS], refused[CPUS];
} tenant[TENANTS];

static struct ln_quota quotas[TENANTS];
static struct ln_turns turns[TENANTS];
static struct ln_allowance allowances[CPUS][TENANTS];
static struct ln_cost costs[CPUS][TENANTS];
static struct ln_cpu cpus[CPUS];
static struct ln_budget budget;
static struct ln_links links;
static __u64 clock_ns[CPUS];
static unsigned int here;

void *fuzz_lookup(const void *map, __u32 value_size, __u32 entries, __u32 key)
{
	if (map == &ln_quotas)
		return &quotas[key];
	if (map == &ln_turns_taken)
		return &turns[key];
	if (map == &ln_allowances)
		return &allowances[here][key];
	if (map == &ln_cpus)
		return &cpus[here];
	if (map == &ln_budgets)
		return &budget;
	if (map == &ln_links_taken)
		return &links;
	abort();
}

__u64 bpf_ktime_get_ns(void)
{
	return clock_ns[here];
}

static __u64 random_state;

static unsigned int random_below(unsigned int n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % n;
}

/* A tenant whose packet comes next on this CPU; -1 if none does now. */
static int next(int count)
{
	int first = random_below(count);

	for (int i = 0; i < count; i++) {
		int t = (first + i) % count;

		if (!(tenant[t].cpus >> here & 1) || (tenant[t].gap_ns && tenant[t].due[here] > clock_ns[here]))
			continue;
		tenant[t].due[here] = clock_ns[here] + tenant[t].gap_ns;
		return t;
	}
	return -1;
}

/* The next packet of this CPU. */
static void packet(int count)
{
	int t = next(count);

	if (t < 0) {
		clock_ns[here] += REFUSAL_NS;
		return;
	}
	tenant[t].packets[here]++;
	if (ln_admit_by(&quotas[t], t, &costs[here][t], 1, 1)) {
		tenant[t].refused[here]++;
		clock_ns[here] += REFUSAL_NS;
	} else {
		clock_ns[here] += LN_PACKET_NS + tenant[t].run_ns;
		ln_charge(t, &costs[here][t], tenant[t].run_ns);
		if (quotas[t].pace[LN_RESOURCE_LINKS])
			ln_charge_frame(t, tenant[t].frame);
	}
}

/* Lets all CPUs go on, side by side, until then. */
static void play(int cpu_count, int count, __u64 until)
{
	for (__u64 tick = clock_ns[0]; tick < until; tick += TICK_NS)
		for (here = 0; here < cpu_count; here++)
			while (clock_ns[here] < tick)
				packet(count);
}

static int read_tenants(int count)
{
	for (int t = 0; t < count; t++) {
		if (scanf("%llu %llu %llu %llu %llu %llu", &tenant[t].pace, &tenant[t].run_ns, &tenant[t].gap_ns,
			  &tenant[t].frame, &tenant[t].cpus, &tenant[t].later) != 6)
			return -1;
		quotas[t].pace[LN_RESOURCE_TIME] = budget.share ? tenant[t].pace : 0;
		quotas[t].pace[LN_RESOURCE_LINKS] = budget.byte_ns ? tenant[t].pace : 0;
	}
	return 0;
}

int main(void)
{
	unsigned long long seed, share, byte;
	int cpu_count, count;

	if (scanf("%llu %llu %llu %d %d", &seed, &share, &byte, &cpu_count, &count) != 5 || cpu_count > CPUS ||
	    count > TENANTS)
		return 1;
	random_state = seed;
	budget.share = share;
	budget.byte_ns = byte;
	if (read_tenants(count))
		return 1;
	for (int c = 0; c < cpu_count; c++)
		clock_ns[c] = BEGIN_NS;
	play(cpu_count, count, BEGIN_NS + HALF_NS);
	for (int t = 0; t < count; t++) {
		memset(tenant[t].packets, 0, sizeof(tenant[t].packets));
		memset(tenant[t].refused, 0, sizeof(tenant[t].refused));
		tenant[t].cpus = tenant[t].later;
	}
	play(cpu_count, count, BEGIN_NS + 2 * HALF_NS);
	for (int t = 0; t < count; t++)
		for (int c = 0; c < cpu_count; c++)
			printf("%llu %llu\n", tenant[t].packets[c], tenant[t].refused[c]);
	return 0;
}
