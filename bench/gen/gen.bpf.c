//go:build ignore

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The load generator. `generate` runs under BPF_PROG_TEST_RUN with live frames (Documentation/bpf/bpf_prog_run.rst): each
 * call is given a page, fills it with a request and sends it out of the interface. Where no request is due, it drops the page,
 * and so waits. `count` is attached where the replies arrive. memcached.h has the like of both for memcached; `generate_datagrams` sends datagrams
 * of any other protocol.
 */
#include "../frame.h"
#include "gen.h"

const volatile enum ln_gen_limit limits; /* puts the enums into BTF, from which Go takes them */
const volatile enum ln_gen_reply kinds;

struct ln_gen_sender senders[LN_GEN_CPUS];
struct ln_gen_count counts[LN_GEN_CPUS];

/* Whole frames, each `stride` bytes from the last. The UDP checksum holds the sum over all that does not vary. */
__u8 templates[LN_GEN_TEMPLATES + LN_GEN_FRAME];
__u32 template_end; /* offset behind the last frame */
__u32 stride;

__u64 interval_q16; /* ns between two frames of one CPU, times 65536; 0: as fast as it goes */
__u32 batch; /* calls between two looks at the clock */
__u64 start_ns; /* 0: not yet */
__u64 end_ns;

const volatile __u32 by_workload; /* 1: count by workload too */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LN_GEN_WORKLOADS);
	__type(key, __u32);
	__type(value, __u64);
} workloads SEC(".maps");

/* How many frames are due, at most one batch. What a CPU could not send in time it skips, as the loop is open. */
static __always_inline void read_schedule(struct ln_gen_sender *s)
{
	__u64 now = bpf_ktime_get_ns(), backlog;

	s->budget = 0;
	if (!start_ns || now < start_ns || now >= end_ns)
		return;
	if (!interval_q16) {
		s->budget = batch;
		return;
	}
	backlog = ((now - start_ns) << 16) / interval_q16 - s->done;
	s->done += backlog;
	if (backlog > batch) {
		s->skipped += backlog - batch;
		backlog = batch;
	}
	s->budget = backlog;
}

static __always_inline int is_due(struct ln_gen_sender *s)
{
	if (++s->tick >= batch) {
		s->tick = 0;
		read_schedule(s);
	}
	if (!s->budget)
		return 0;
	s->budget--;
	return 1;
}

static __always_inline __u32 fold(__u32 sum)
{
	return (sum & 0xffff) + (sum >> 16);
}

/* The sum of four words of a checksum. */
static __always_inline __u32 sum_of(__u64 words)
{
	return (words & 0xffff) + (words >> 16 & 0xffff) + (words >> 32 & 0xffff) + (words >> 48);
}

/* Gives a frame a port and finishes its checksum, to which the other parts that vary add up to sum (RFC 1624). */
static __always_inline void finish(struct udphdr *udp, __u64 id, __u32 sum)
{
	__be16 port = bpf_htons(LN_GEN_PORT + (id & (LN_GEN_PORTS - 1)));

	sum = fold(fold(sum + udp->check + port));
	udp->source = port;
	udp->check = sum == 0xffff ? 0xffff : (__u16)~sum;
}

/* This CPU's sender, if it is to send a frame now, else NULL. */
static __always_inline struct ln_gen_sender *due_sender(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	if (cpu >= LN_GEN_CPUS)
		return NULL;
	senders[cpu].ready = 1;
	return is_due(&senders[cpu]) ? &senders[cpu] : NULL;
}

/* Makes the page the frame of a template. */
static __always_inline int put_template(struct xdp_md *ctx, __u32 at)
{
	__u32 len, room = ctx->data_end - ctx->data;

	barrier_var(at);
	if (at >= LN_GEN_TEMPLATES)
		return -1;
	len = ETH_HLEN + bpf_ntohs(*(__be16 *)&templates[at + ETH_HLEN + offsetof(struct iphdr, tot_len)]);
	/* The page has room for more. A recycled one keeps the length that its last user gave it, unless its length is changed here. */
	if (bpf_xdp_adjust_tail(ctx, (int)len - (int)room))
		return -1;
	barrier_var(len);
	if (!len || len > LN_GEN_FRAME)
		return -1;
	return bpf_xdp_store_bytes(ctx, 0, &templates[at], len);
}

/* Makes the page the frame of the next template. All frames are sent in turn. */
static __always_inline int put_next(struct xdp_md *ctx, struct ln_gen_sender *s)
{
	__u32 at = s->at;

	s->at = at + stride < template_end ? at + stride : 0;
	return put_template(ctx, at);
}

/* Where to count a frame that came to a client; NULL if it did not. */
static __always_inline struct ln_gen_count *count_of(const struct frame *f, const void *end)
{
	__u32 cpu = bpf_get_smp_processor_id();

	if ((void *)&f->rpc > end || f->eth.h_proto != bpf_htons(ETH_P_IP) || f->ip.ihl != 5 ||
	    f->ip.protocol != IPPROTO_UDP)
		return NULL;
	if ((__u16)(bpf_ntohs(f->udp.dest) - LN_GEN_PORT) >= LN_GEN_PORTS || cpu >= LN_GEN_CPUS)
		return NULL;
	return &counts[cpu];
}

#include "memcached.h"

/* Sends a request of λ-RPC with an ID of its own. */
SEC("xdp")
int generate(struct xdp_md *ctx)
{
	struct ln_gen_sender *s = due_sender();
	struct frame *f;
	__u64 id;

	if (!s || put_next(ctx, s))
		return XDP_DROP;
	f = (void *)(long)ctx->data;
	if ((void *)(f + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	id = s->next_id++;
	f->rpc.request = bpf_cpu_to_be64(id);
	finish(&f->udp, id, sum_of(f->rpc.request));
	s->sent++;
	return XDP_TX;
}

/* Sends a datagram, of which only the client's port varies. */
SEC("xdp")
int generate_datagrams(struct xdp_md *ctx)
{
	struct ln_gen_sender *s = due_sender();
	struct frame *f;

	if (!s || put_next(ctx, s))
		return XDP_DROP;
	f = (void *)(long)ctx->data;
	if ((void *)&f->rpc > (void *)(long)ctx->data_end)
		return XDP_DROP;
	finish(&f->udp, s->next_id++, 0);
	s->sent++;
	return XDP_TX;
}

static __always_inline void count_workload(__u32 id)
{
	__u32 key = id & (LN_GEN_WORKLOADS - 1);
	__u64 *n = bpf_map_lookup_elem(&workloads, &key);

	if (n)
		++*n;
}

static __always_inline void count_rpc(struct ln_gen_count *c, const struct frame *f)
{
	if (f->rpc.magic != bpf_htons(LN_RPC_MAGIC) || f->rpc.version != LN_RPC_VERSION) {
		c->others++;
	} else if (f->rpc.type == LN_TYPE_RESPONSE && !f->rpc.code) {
		c->responses++;
		c->bytes += bpf_ntohs(f->rpc.length);
		if (by_workload)
			count_workload(bpf_ntohl(f->rpc.workload));
	} else if (f->rpc.type == LN_TYPE_RESPONSE) {
		c->failures++;
	} else if (f->rpc.type == LN_TYPE_ERROR) {
		c->errors++;
	} else {
		c->others++;
	}
}

SEC("xdp.frags")
int count(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct frame *f = (void *)(long)ctx->data;
	struct ln_gen_count *c = count_of(f, end);

	if (!c)
		return XDP_PASS;
	if ((void *)(f + 1) > end)
		c->others++;
	else
		count_rpc(c, f);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
