// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * The NIC program: answers a GET by UDP if the cache has all of its keys. Everything else, and what the server might answer differently, goes
 * to the server untouched.
 */
#include "cache.h"
#include "request.h"
#include "sketch.h"
#include "../../bpf/chain.h"
#include "../../bpf/headers.h"
#include "../../bpf/server.h"
#include "../../bpf/socket.h"

char mc_license[] SEC("license") = "Dual BSD/GPL";

enum mc_get_limit {
	MC_DATAGRAM =
		1400, /* bytes of UDP payload; as memcached, which divides what is longer (UDP_MAX_PAYLOAD_SIZE) */
	MC_FRAME = 8, /* bytes: request ID, number of the datagram, how many there are, and 0 */
	MC_REQUEST = 2048, /* a power of two above MC_DATAGRAM + MC_KEY_MAX */
	MC_GET_KEYS = 64, /* of one GET */
	MC_GET_MIN = sizeof("get k\r\n") - 1,
	MC_END = sizeof("END\r\n") - 1,
};

const volatile __u64 mc_secret = 0;
const volatile __u64 mc_guard_mask = 0;
const volatile __u64 mc_buckets = 0;
const volatile __u64 mc_sketch_lines = 0;
/* Keys that are asked for no more often than this are not fetched. The worker sets it. */
volatile __u32 mc_threshold = 0;

/* Whether the worker comes for the keys by itself, and soon. Then only those wake it that are asked for most. */
volatile _Bool mc_gathers = 0;
const volatile __u16 mc_port;
const volatile __u8 mc_wildcard[2]; /* whether the server's socket is bound to no address: of IPv4, of IPv6 */

/* A key of a GET. */
struct mc_get_key {
	__u64 hash;
	__u16 at; /* where in the request it begins */
	__u8 len; /* bytes */
	__u8 frequency; /* how often it was asked for of late */
	__u32 cell; /* of its item; 0: there is none */
};

/* A GET at hand. */
struct mc_get {
	struct ln_flow flow;
	__u32 len; /* bytes of the request */
	__u32 at; /* where in it the next key begins */
	__u32 n; /* keys */
	__u32 missed; /* how many of them were not found */
	__u32 reply; /* bytes of the reply's values so far */
	__u32 versions; /* 1: gets; 0: get */
	struct mc_get_key keys[MC_GET_KEYS];
	__u8 request[MC_REQUEST];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mc_get);
} mc_gets SEC(".maps");

enum mc_get_count {
	MC_GET_HITS, /* keys that the NIC program answered */
	MC_GET_MISSES, /* keys that the server is left to answer, since the cache does not have them */
	MC_GET_COLD, /* of these: keys that are asked for too seldom to be worth their memory */
	MC_GET_BESIDE, /* keys that the cache has, and the server is left to answer, since others are missing */
	MC_GET_LARGE, /* GETs that it would answer, had the packet room for the reply */
	MC_GET_OTHER, /* datagrams to the server that are no GET, or one that is left to the server */
	MC_GET_UNASKED, /* keys whose values the worker would have been asked to fetch, had it kept up */
	MC_GET_COUNT_MAX,
};

struct mc_get_counts {
	__u64 counts[MC_GET_COUNT_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mc_get_counts);
} mc_get_counters SEC(".maps");

/* Keys that were missed, for the worker. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} mc_misses SEC(".maps");

/* Keys that the worker was asked for of late, each with the state of its guards. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384); /* a power of two */
	__type(key, __u32);
	__type(value, __u64);
} mc_asked SEC(".maps");

static __always_inline void mc_count_gets(enum mc_get_count count, __u32 n)
{
	__u32 zero = 0;
	struct mc_get_counts *c = bpf_map_lookup_elem(&mc_get_counters, &zero);

	if (c)
		c->counts[count] += n;
}

/*
 * Has the worker fetch a key. Where it was asked, and no write has come since, it has done for the key what it can; it is asked again after
 * some 100 ms, for the key may have been displaced. While a write is pending, there is no use in fetching.
 */
static __always_inline void mc_ask(struct mc_get *g, const struct mc_get_key *key)
{
	__u64 guard = mc_guard_word(mc_guard_of(key->hash, mc_guard_mask)), all = mc_guard_word(MC_GUARD_ALL), word;
	__u64 wake = key->frequency >= MC_FREQUENCY_HOT ? BPF_RB_FORCE_WAKEUP : mc_gathers ? BPF_RB_NO_WAKEUP : 0;
	__u32 slot = key->hash & 16383, at = key->at, len = key->len;
	__u64 *asked;

	if (guard == MC_GUARD_CLOSED || all == MC_GUARD_CLOSED)
		return;
	word = key->hash ^ guard ^ all << 1 ^ bpf_ktime_get_coarse_ns() >> 27;
	asked = bpf_map_lookup_elem(&mc_asked, &slot);
	if (!asked || *asked == word)
		return;
	*asked = word;
	if (at >= MC_REQUEST - 256 || !ln_length_fits(len, MC_KEY_MAX) ||
	    bpf_ringbuf_output(&mc_misses, g->request + at, len, wake))
		mc_count_gets(MC_GET_UNASKED, 1);
}

/* Has the processor bring memory near, and go on meanwhile. */
static __always_inline void mc_touch(const void *memory)
{
	(void)*(const volatile __u8 *)memory;
}

/* Whether the i-th key is the item's. Words first, and then the last, which may overlap. */
LN_GLOBAL int mc_is_of(const struct mc_item *item, const struct mc_get *g, __u32 i)
{
	const __u8 *a, *b;
	__u32 at, len;

	if (!item || !g || i >= MC_GET_KEYS)
		return 0;
	at = g->keys[i].at;
	len = g->keys[i].len;
	if (item->hash != g->keys[i].hash || item->key_len != len)
		return 0;
	if (at >= MC_REQUEST - 256 || !ln_length_fits(len, MC_KEY_MAX))
		return 0;
	a = item->bytes + MC_ITEM_KEY;
	b = g->request + at;
	if (len < 8) {
		for (__u32 i = 0; i < 8; i++)
			if (i < len && a[i] != b[i])
				return 0;
		return 1;
	}
	for (__u32 i = 0; i < MC_KEY_MAX / 8 && i < len / 8; i++)
		if (*(const __u64 *)(a + i * 8) != *(const __u64 *)(b + i * 8))
			return 0;
	return *(const __u64 *)(a + len - 8) == *(const __u64 *)(b + len - 8);
}

enum mc_key {
	MC_KEY_NEXT, /* another key follows */
	MC_KEY_LAST,
	MC_KEY_BAD, /* what follows is not only keys */
};

/* What is known of a key is in three places. They are far apart, so the processor is to wait for all of them at once, and not for one after the other. */
static __always_inline void mc_touch_key(__u64 hash)
{
	__u32 line = mc_one_of(mc_sketch_lines, hash), number = mc_one_of(mc_buckets, hash);
	__u32 guard = mc_guard_of(hash, mc_guard_mask);
	const void *counters = bpf_map_lookup_elem(&mc_sketch, &line);
	const void *bucket = bpf_map_lookup_elem(&mc_index, &number);
	const void *word = bpf_map_lookup_elem(&mc_guards, &guard);

	if (counters)
		mc_touch(counters);
	if (bucket)
		mc_touch(bucket);
	if (word)
		mc_touch(word);
}

/* Reads the next key of a GET. */
LN_GLOBAL int mc_read_key(struct mc_get *g)
{
	__u64 hash = mc_hash_begin();
	struct mc_get_key *key;
	__u32 at, len;
	__u8 byte = 0;

	if (!g || g->n >= MC_GET_KEYS || g->at >= MC_DATAGRAM)
		return MC_KEY_BAD;
	key = &g->keys[g->n];
	at = g->at;
	for (len = 0; len <= MC_KEY_MAX; len++) {
		byte = g->request[(at + len) & (MC_REQUEST - 1)];
		if (byte <= ' ')
			break;
		hash = mc_hash_byte(hash, byte);
	}
	if (!len || len > MC_KEY_MAX)
		return MC_KEY_BAD;
	if (byte != ' ' &&
	    (byte != '\r' || at + len + 2 != g->len || g->request[(at + len + 1) & (MC_REQUEST - 1)] != '\n'))
		return MC_KEY_BAD;
	key->hash = mc_hash_end(hash);
	mc_touch_key(key->hash);
	key->at = at;
	key->len = len;
	g->at = at + len + 1;
	g->n++;
	return byte == ' ' ? MC_KEY_NEXT : MC_KEY_LAST;
}

/* Counts that the i-th key was asked for, and finds its item, perhaps. */
LN_GLOBAL int mc_find_key(struct mc_get *g, __u32 i)
{
	const volatile struct mc_bucket *bucket;
	struct mc_get_key *key;
	__u32 number;

	if (!g || i >= MC_GET_KEYS)
		return 0;
	key = &g->keys[i];
	key->cell = 0;
	number = mc_one_of(mc_buckets, key->hash);
	bucket = bpf_map_lookup_elem(&mc_index, &number);
	if (!bucket)
		return 0;
	/* Of two keys with the same tag, the server answers one. */
	for (int way = 0; way < MC_WAYS && !key->cell; way++) {
		__u64 entry = bucket->entries[way];

		if (entry >> 32 == key->hash >> 32)
			key->cell = entry;
	}
	if (key->cell) {
		const struct mc_item *item = mc_item_at(key->cell);

		if (item) {
			mc_touch(item);
			mc_touch((const __u8 *)item + 64); /* the processor's next line; most items end there */
		}
	}
	key->frequency = mc_count_key(key->hash);
	return !!key->cell;
}

/* Makes sure that what was found is the i-th key's item, and current. */
LN_GLOBAL int mc_check_key(struct mc_get *g, __u32 i)
{
	const struct mc_item *item;
	struct mc_get_key *key;

	if (!g || i >= MC_GET_KEYS)
		return 0;
	key = &g->keys[i];
	item = key->cell ? mc_item_at(key->cell) : 0;
	if (item && mc_is_of(item, g, i) && mc_is_current(item)) {
		g->reply += item->head_len + item->tail_len + (g->versions ? item->cas_len : 0);
		return 1;
	}
	g->missed++;
	if (key->frequency > mc_threshold)
		mc_ask(g, key);
	else
		mc_count_gets(MC_GET_COLD, 1);
	return 0;
}

/* Whether this is a GET of one datagram, and nothing else; its keys are read. */
static __always_inline int mc_is_get(struct mc_get *g)
{
	const __u8 *line = g->request + MC_FRAME;
	int key = MC_KEY_NEXT;

	if (*(__u16 *)(g->request + 4) != bpf_htons(1) || line[0] != 'g' || line[1] != 'e' || line[2] != 't')
		return 0;
	g->versions = line[3] == 's';
	if (line[3 + g->versions] != ' ')
		return 0;
	g->at = MC_FRAME + sizeof("get ") - 1 + g->versions;
	for (int i = 0; i < MC_GET_KEYS && key == MC_KEY_NEXT; i++)
		key = mc_read_key(g);
	return key == MC_KEY_LAST;
}

/* Writes the i-th value of the reply at an offset of the packet; the offset behind it, or 0. */
LN_GLOBAL __u32 mc_write_value(struct xdp_md *ctx, struct mc_get *g, __u32 i, __u32 at)
{
	const struct mc_item *item;
	__u32 head, tail, cas;

	if (!g || i >= MC_GET_KEYS)
		return 0;
	item = mc_item_at(g->keys[i].cell);
	if (!item)
		return 0;
	head = item->head_len;
	tail = item->tail_len;
	if (!g->versions) {
		head += tail;
		if (!ln_length_fits(head, sizeof(item->bytes)) ||
		    bpf_xdp_store_bytes(ctx, at, (void *)item->bytes, head))
			return 0;
		return at + head;
	}
	cas = item->cas_len;
	if (!ln_length_fits(head, MC_HEAD_MAX) ||
	    !ln_length_fits(tail, sizeof(item->bytes) - MC_HEAD_MAX - MC_CAS_MAX) || !ln_length_fits(cas, MC_CAS_MAX))
		return 0;
	if (bpf_xdp_store_bytes(ctx, at, (void *)item->bytes, head) ||
	    bpf_xdp_store_bytes(ctx, at + head, (void *)(item->bytes + head + tail), cas) ||
	    bpf_xdp_store_bytes(ctx, at + head + cas, (void *)(item->bytes + head), tail))
		return 0;
	return at + head + cas + tail;
}

/* Gives the packet another length: from a driver it has room behind, and from a local socket before it. */
static __always_inline int mc_resize(struct xdp_md *ctx, int by)
{
	return by && bpf_xdp_adjust_tail(ctx, by) && (by < 0 || bpf_xdp_adjust_head(ctx, -by)) ? -1 : 0;
}

/* Writes the reply's headers; the offset behind them, or 0. */
static __always_inline __u32 mc_write_headers(struct xdp_md *ctx, struct mc_get *g, __u32 udp_len)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *l3;
	struct ln_flow *flow = &g->flow;
	struct udphdr *udp;

	l3 = ln_write_l2(data, end, flow);
	if (!l3 || l3 + sizeof(struct ipv6hdr) > end)
		return 0;
	if (flow->ipv6)
		ln_write_ipv6(l3, flow->own_addr, flow->peer_addr, flow->flow_label, udp_len);
	else
		ln_write_ipv4(l3, *(__be32 *)flow->own_addr, *(__be32 *)flow->peer_addr, flow->tos, udp_len);
	udp = l3 + ln_l3_len(flow->ipv6);
	if ((void *)(udp + 1) + MC_FRAME > end)
		return 0;
	udp->source = flow->own_port;
	udp->dest = flow->peer_port;
	udp->len = bpf_htons(udp_len);
	udp->check = 0;
	*(__u32 *)(udp + 1) = *(__u16 *)g->request; /* the request's ID; this is datagram 0 */
	((__u32 *)(udp + 1))[1] = bpf_htonl(1 << 16); /* of 1 */
	return ln_l2_len(flow) + ln_l3_len(flow->ipv6) + sizeof(*udp) + MC_FRAME;
}

/* Turns the packet into the reply. Returns the XDP action. */
static __noinline int mc_reply(struct xdp_md *ctx, struct mc_get *g)
{
	__u32 udp_len = sizeof(struct udphdr) + MC_FRAME + g->reply + MC_END, at, n;
	__u32 l4 = ln_l2_len(&g->flow) + ln_l3_len(g->flow.ipv6);

	if (mc_resize(ctx, (int)(l4 + udp_len) - (int)bpf_xdp_get_buff_len(ctx))) {
		mc_count_gets(MC_GET_LARGE, 1);
		return XDP_PASS;
	}
	at = mc_write_headers(ctx, g, udp_len);
	n = g->n;
	for (__u32 i = 0; i < MC_GET_KEYS && i < n && at; i++)
		at = mc_write_value(ctx, g, i, at);
	if (!at || bpf_xdp_store_bytes(ctx, at, "END\r\n", MC_END))
		return XDP_DROP;
	if (g->flow.ipv6 && ln_finish_ipv6(ctx, g->flow.own_addr, g->flow.peer_addr, l4, udp_len))
		return XDP_DROP;
	mc_count_gets(MC_GET_HITS, n);
	return XDP_TX;
}

/* Whether a datagram to the server is a GET that could be answered. */
static __noinline int mc_read_get(struct xdp_md *ctx, struct mc_get *g, const struct ln_packet *pkt)
{
	__u32 len = pkt->udp_len - sizeof(struct udphdr);

	g->len = len;
	g->n = 0;
	g->missed = 0;
	g->reply = 0;
	if (len >= MC_FRAME + MC_GET_MIN && ln_length_fits(len, MC_DATAGRAM) &&
	    !bpf_xdp_load_bytes(ctx, pkt->l4 + sizeof(struct udphdr), g->request, len) && mc_is_get(g))
		return 1;
	mc_count_gets(MC_GET_OTHER, 1);
	return 0;
}

/* Whether the sender can be answered. Saves what the reply needs of the headers. */
static __noinline int mc_save_sender(struct xdp_md *ctx, struct mc_get *g, const struct ln_packet *pkt)
{
	if (ln_save_flow(ctx, pkt, &g->flow))
		return 0;
	/* What comes by loopback is from this machine, and has no checksum yet. */
	return ctx->ingress_ifindex == LN_LOOPBACK || (ln_is_peer(&g->flow) && ln_checksum_ok(ctx, pkt, &g->flow));
}

/* Whether the packet would reach the server. */
static __noinline int mc_reaches(struct xdp_md *ctx, struct mc_get *g)
{
	struct ln_socket found;

	return ln_is_servers(&g->flow) && ln_find_socket(ctx, &g->flow, &found) &&
	       found.wildcard == mc_wildcard[g->flow.ipv6 != 0];
}

/* Whether the cache has all that the GET asks for, and the server would get it. */
static __noinline int mc_has_all(struct xdp_md *ctx, struct mc_get *g)
{
	__u32 n = g->n, found = 0, reaches;

	for (__u32 i = 0; i < MC_GET_KEYS && i < n; i++)
		found += mc_find_key(g, i);
	reaches = found == n && mc_reaches(ctx, g);
	for (__u32 i = 0; i < MC_GET_KEYS && i < n; i++)
		mc_check_key(g, i);
	if (g->missed) {
		mc_count_gets(MC_GET_MISSES, g->missed);
		mc_count_gets(MC_GET_BESIDE, n - g->missed);
		return 0;
	}
	if (MC_FRAME + g->reply + MC_END > MC_DATAGRAM) {
		mc_count_gets(MC_GET_LARGE, 1);
		return 0;
	}
	return reaches;
}

/*
 * The memory that this needs is rarely near. So it does in between what needs none of it: it reads the keys, and then the packet's headers; looks for the
 * items, and then for the server's socket.
 */
SEC("xdp.frags")
int mc_answer(struct xdp_md *ctx)
{
	int action = XDP_PASS;
	struct ln_packet pkt;
	struct mc_get *g;
	__u32 zero = 0;

	if (ln_parse(ctx, &pkt) || pkt.dport != bpf_htons(mc_port))
		return XDP_PASS;
	g = bpf_map_lookup_elem(&mc_gets, &zero);
	if (g && mc_read_get(ctx, g, &pkt) && mc_save_sender(ctx, g, &pkt) && mc_has_all(ctx, g))
		action = mc_reply(ctx, g);
	return action == XDP_PASS ? ln_pass(ctx, 0) : action;
}

/* Named here so that BTF, and the Go types made from it, have them. */
const enum mc_cache_limit *mc_cache_limit_ __attribute__((unused));
const enum mc_get_limit *mc_get_limit_ __attribute__((unused));
const enum mc_get_count *mc_get_count_ __attribute__((unused));
const enum mc_sketch_limit *mc_sketch_limit_ __attribute__((unused));
const enum mc_guard_limit *mc_guard_limit_ __attribute__((unused));
const struct mc_item *mc_item_ __attribute__((unused));
