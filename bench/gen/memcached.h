/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to memcached by UDP (doc/protocol.txt of memcached), and its replies. A trace says for which keys, and whether to GET or to SET. Keys
 * have numbers; a key, and its value, are made of the number and of constants. So every reply can be checked.
 */
#ifndef LN_GEN_MEMCACHED_H
#define LN_GEN_MEMCACHED_H

/* What stands before the parts of a datagram. */
struct mc_datagram {
	__be16 id;
	__be16 at; /* number of this datagram */
	__be16 count; /* of the reply or request */
	__be16 zero;
} __attribute__((packed));

/* A GET or SET up to the value: "get KEY\r\n" or "set KEY 0 0 16\r\nVALUE\r\n". */
struct mc_request {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	struct mc_datagram datagram;
	char before[4 + LN_GEN_WORD];
	__u64 key;
	__u8 get_end[2];
} __attribute__((packed));

struct mc_set {
	struct mc_request request;
	char before[8];
	__u64 value;
} __attribute__((packed));

/* The reply to a GET: "VALUE KEY 0 16\r\nVALUE\r\nEND\r\n". */
struct mc_value {
	struct mc_datagram datagram;
	char before[6 + LN_GEN_WORD];
	__u64 key;
	char between[8];
	__u64 value;
	char after[14];
} __attribute__((packed));

struct mc_stored {
	struct mc_datagram datagram;
	char line[8];
} __attribute__((packed));

/* Steps of a trace, each the number of a key, with LN_GEN_SET or without. An array's values are multiples of 8 bytes. */
struct mc_steps {
	__u32 steps[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* a power of two, set by the loader */
	__type(key, __u32);
	__type(value, struct mc_steps);
} trace SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* LN_GEN_ASKED for each CPU, set by the loader */
	__type(key, __u32);
	__type(value, struct ln_gen_asked);
} asked SEC(".maps");

const volatile __u32 trace_mask; /* steps of the trace, less 1 */
__u32 tenants = 1; /* servers that are asked in turn: the first ones */
const volatile __u32 interfaces[LN_GEN_TENANTS]; /* by which each is reached */

__u32 stamp; /* 1: measure latencies */
__u64 latencies[LN_GEN_REPLIES][LN_GEN_BUCKETS];

/* Where a request is remembered. The upper 6 of the ID's 26 bits are the CPU's number; the lower 10 are in the port, the others in the datagram. */
static __always_inline struct ln_gen_asked *mc_asked(__u32 id)
{
	__u32 slot = (id >> 20) * LN_GEN_ASKED + (id & (LN_GEN_ASKED - 1));

	return bpf_map_lookup_elem(&asked, &slot);
}

/* Where a tenant is in the upper bits of ln_gen_asked.id. */
#define MC_TENANT 26

static __always_inline __u32 *mc_step(__u32 number)
{
	__u32 at = (number & trace_mask) / 2;
	struct mc_steps *two = bpf_map_lookup_elem(&trace, &at);

	return two ? &two->steps[number & 1] : NULL;
}

/* The letter from a to p for each 4 bits of a number, the lowest first. */
static __always_inline __u64 mc_word(__u64 n)
{
	n = (n | n << 16) & 0x0000ffff0000ffff;
	n = (n | n << 8) & 0x00ff00ff00ff00ff;
	n = (n | n << 4) & 0x0f0f0f0f0f0f0f0f;
	return n + 0x6161616161616161;
}

/* Writes the step's key, and the value of a SET. Returns what they add to the checksum. */
static __always_inline __u32 mc_write_words(struct mc_request *r, const void *end, __u32 step)
{
	struct mc_set *set = (void *)r;
	__u64 word = mc_word(step & ~LN_GEN_SET);

	r->key = word;
	if (!(step & LN_GEN_SET))
		return sum_of(word);
	if ((void *)(set + 1) > end)
		return 0;
	set->value = word;
	return 2 * sum_of(word);
}

/* Sends the request of the trace's next step. */
SEC("xdp")
int ask(struct xdp_md *ctx)
{
	struct ln_gen_sender *s = due_sender();
	struct ln_gen_asked *a;
	struct mc_request *r;
	__u32 id, tenant, *step;
	void *end;

	if (!s)
		return XDP_DROP;
	tenant = s->tenant & (LN_GEN_TENANTS - 1);
	id = bpf_get_smp_processor_id() << 20 | (s->next_id & 0xfffff);
	step = mc_step(s->step);
	a = mc_asked(id);
	if (!step || !a || put_template(ctx, (2 * tenant + (*step & LN_GEN_SET ? 1 : 0)) * stride))
		return XDP_DROP;
	r = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if ((void *)(r + 1) > end)
		return XDP_DROP;
	r->datagram.id = bpf_htons(id >> 10);
	finish(&r->udp, id, mc_write_words(r, end, *step) + r->datagram.id);
	a->id = id | tenant << MC_TENANT;
	a->step = *step;
	a->sent_ns = stamp ? bpf_ktime_get_ns() : 1;
	s->step++;
	s->tenant = tenant + 1 < tenants ? tenant + 1 : 0;
	s->next_id++;
	s->sent++;
	return bpf_redirect(interfaces[tenant], 0);
}

/* Whether this is the right reply, in one datagram, to a request of this step. */
static __always_inline int mc_is_right(const struct frame *f, const void *end, __u32 step)
{
	const struct mc_value *v = (void *)&f->rpc;
	const struct mc_stored *s = (void *)&f->rpc;
	__u64 word = mc_word(step & ~LN_GEN_SET);

	if (step & LN_GEN_SET)
		return (void *)(s + 1) <= end && f->udp.len == bpf_htons(sizeof(f->udp) + sizeof(*s)) &&
		       !__builtin_memcmp(s->line, "STORED\r\n", sizeof(s->line));
	return (void *)(v + 1) <= end && f->udp.len == bpf_htons(sizeof(f->udp) + sizeof(*v)) && !v->datagram.at &&
	       v->datagram.count == bpf_htons(1) && v->key == word && v->value == word &&
	       !__builtin_memcmp(v->before, "VALUE ikernel:", sizeof(v->before)) &&
	       !__builtin_memcmp(v->between, " 0 16\r\n=", sizeof(v->between)) &&
	       !__builtin_memcmp(v->after, "-number\r\nEND\r\n", sizeof(v->after));
}

/* The kind of a right reply. Of values, only those that the NIC sends have no checksum. */
static __always_inline enum ln_gen_reply mc_kind(const struct frame *f, __u32 step)
{
	if (step & LN_GEN_SET)
		return LN_GEN_STORED;
	return f->udp.check ? LN_GEN_SERVED : LN_GEN_CACHED;
}

/* Latencies are counted in buckets, whose width is a PARTS-th of the power of two below. */
static __always_inline void mc_count_latency(enum ln_gen_reply kind, __u64 sent_ns)
{
	__u64 ns = bpf_ktime_get_ns() - sent_ns;
	__u32 shift = 0;

	for (int i = 5; i >= 0; i--)
		if (ns >> shift >> (1 << i) >= LN_GEN_PARTS)
			shift += 1 << i;
	ns = shift * LN_GEN_PARTS + (ns >> shift);
	if (ns >= LN_GEN_BUCKETS)
		ns = LN_GEN_BUCKETS - 1;
	if (kind < LN_GEN_REPLIES)
		__sync_fetch_and_add(&latencies[kind][ns], 1);
}

static __always_inline void mc_count(struct ln_gen_count *c, const struct frame *f, const void *end, __u32 interface)
{
	const struct mc_datagram *d = (void *)&f->rpc;
	enum ln_gen_reply kind;
	struct ln_gen_asked *a;
	__u32 id, tenant;

	if ((void *)(d + 1) > end) {
		c->others++;
		return;
	}
	id = bpf_ntohs(d->id) << 10 | (bpf_ntohs(f->udp.dest) - LN_GEN_PORT);
	a = mc_asked(id);
	if (!a || !a->sent_ns) {
		c->others++;
		return;
	}
	tenant = a->id >> MC_TENANT & (LN_GEN_TENANTS - 1);
	if (a->id != (id | tenant << MC_TENANT) || interfaces[tenant] != interface) {
		c->others++;
	} else if (!mc_is_right(f, end, a->step)) {
		c->failures++;
	} else {
		kind = mc_kind(f, a->step);
		c->responses++;
		c->replies[kind]++;
		c->tenants[tenant]++;
		if (a->sent_ns > 1)
			mc_count_latency(kind, a->sent_ns);
		a->sent_ns = 0;
	}
}

SEC("xdp.frags")
int count_memcached(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct frame *f = (void *)(long)ctx->data;
	struct ln_gen_count *c = count_of(f, end);

	if (!c)
		return XDP_PASS;
	mc_count(c, f, end, ctx->ingress_ifindex);
	return XDP_DROP;
}

#endif
