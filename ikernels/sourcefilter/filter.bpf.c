// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* The NIC program: drops datagrams to a server from sources that are not allowed, or that send too many. All else goes on untouched. */
#include "../../bpf/chain.h"
#include "../../bpf/server.h"

char sf_license[] SEC("license") = "Dual BSD/GPL";

enum sf_limit {
	SF_PREFIXES = 1024,
	SF_SOURCES = 65536, /* whose rate is known at once */
	SF_TRIES = 64, /* of a CPU to count a request that others count, too */
};

/* What becomes of a datagram. */
enum sf_verdict {
	SF_PASSED,
	SF_SOURCE, /* no prefix has its source */
	SF_RATE, /* its source has sent too many */
	SF_VERDICTS,
};

const volatile __u16 sf_port;
const volatile __u32 sf_prefixes; /* how many are allowed; 0: all sources are */
const volatile __u64 sf_interval; /* ns between two requests of a source at the limit; 0: there is none */
const volatile __u64 sf_burst; /* ns: of so many intervals, the requests may come at once */

/* What sf_allowed is asked for. One map has IPv4 and IPv6, told from each other by the first byte. */
struct sf_prefix {
	__u32 len; /* bits, with those of the family */
	__u8 family; /* 4 or 6 */
	__u8 addr[16]; /* as in struct ln_flow */
	__u8 pad[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SF_PREFIXES);
	__type(key, struct sf_prefix);
	__type(value, __u32);
} sf_allowed SEC(".maps");

struct sf_source {
	__u8 addr[16];
	__u32 ipv6;
};

/*
 * When each source has used up what it may send: a token bucket in one word, which several CPUs change at once (GCRA, as in ITU-T I.371). Where there are too
 * many sources, those are forgotten that have sent nothing for longest, and begin anew.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SF_SOURCES);
	__type(key, struct sf_source);
	__type(value, __u64);
} sf_sources SEC(".maps");

struct sf_counts {
	__u64 counts[SF_VERDICTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sf_counts);
} sf_counters SEC(".maps");

static __noinline int sf_is_allowed(const struct ln_flow *flow)
{
	struct sf_prefix key = { .len = 8 * 17, .family = flow->ipv6 ? 6 : 4 };

	for (int i = 0; i < 16; i++)
		key.addr[i] = flow->peer_addr[i];
	return bpf_map_lookup_elem(&sf_allowed, &key) != NULL;
}

/* Whether the source may send a request now. Counts it if so. */
static __noinline int sf_conforms(const struct ln_flow *flow)
{
	__u64 now = bpf_ktime_get_ns(), zero = 0, before, until, *word;
	struct sf_source source = { .ipv6 = flow->ipv6 };

	ln_copy_addr(source.addr, flow->peer_addr);
	word = bpf_map_lookup_elem(&sf_sources, &source);
	if (!word) {
		bpf_map_update_elem(&sf_sources, &source, &zero, BPF_NOEXIST);
		word = bpf_map_lookup_elem(&sf_sources, &source);
	}
	if (!word)
		return 1; /* no memory for it is left at this moment */
	for (int i = 0; i < SF_TRIES; i++) {
		before = *(volatile __u64 *)word;
		until = (before > now ? before : now) + sf_interval;
		if (until - now > sf_burst)
			return 0;
		if (__sync_val_compare_and_swap(word, before, until) == before)
			return 1;
	}
	return 0;
}

SEC("xdp.frags")
int sf_filter(struct xdp_md *ctx)
{
	enum sf_verdict verdict = SF_PASSED;
	struct ln_flow flow;
	struct sf_counts *c;
	struct ln_packet pkt;
	__u32 zero = 0;

	if (ln_parse(ctx, &pkt) || pkt.dport != bpf_htons(sf_port))
		return XDP_PASS;
	c = bpf_map_lookup_elem(&sf_counters, &zero);
	if (!c || ln_save_flow(ctx, &pkt, &flow) || !ln_is_servers(&flow))
		return ln_pass(ctx, 0);
	if (sf_prefixes && !sf_is_allowed(&flow))
		verdict = SF_SOURCE;
	else if (sf_interval && !sf_conforms(&flow))
		verdict = SF_RATE;
	c->counts[verdict]++;
	return verdict == SF_PASSED ? ln_pass(ctx, 0) : XDP_DROP;
}

/* Named here so that BTF, and the Go types made from it, have them. */
const enum sf_limit *sf_limit_ __attribute__((unused));
const enum sf_verdict *sf_verdict_ __attribute__((unused));
const struct sf_prefix *sf_prefix_ __attribute__((unused));
