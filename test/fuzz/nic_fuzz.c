// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * Coverage-guided fuzzing of the NIC program, built as ordinary C under AddressSanitizer. An input is a series of packets,
 * each a valid one with some of its fields and bytes changed, and of pauses. The packet's memory is poisoned around it, so a
 * byte read or written outside is found, as is a lambda that gets wrong bounds, or runs twice.
 */
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../bpf/root.bpf.c"

#include "../../bpf/calls/calls.bpf.c"
#include "../../bpf/messages/messages.bpf.c"
#include "../../bpf/once/once.bpf.c"
#include "../../bpf/rdma/rdma.bpf.c"

#define BUFFER 8192
#define HEAD_ROOM 256
#define PACKET_ROOM 3000 /* as far as a packet may grow */
#define IN_FLIGHT 8
#define MESSAGE_MAX 4096
#define TIMEOUT_MS 100
#define REGION 0x10000 /* its address */

const volatile __u8 ln_unknown_reply = 1;
const volatile __u64 ln_secret = 0x6c6e6963;

#define check(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%d: not %s\n", __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

static struct {
	const void *map;
	uint8_t *memory;
} maps[32];

/* What an input has touched. It is zeroed before the next, so that an input does the same alone and after others. */
static struct {
	uint8_t *element;
	uint32_t size;
} touched[1 << 16];
static unsigned int touched_count;

static uint8_t *buffer; /* below 4 GiB, since xdp_md has 32 bits for an address */
static uint64_t now;
static int locked;
static uint32_t sequence; /* of the last packet with a tag */
static int called; /* an external service was looked for */

void *fuzz_lookup(const void *map, __u32 value_size, __u32 entries, __u32 key)
{
	static __u32 owners[] = { 0, 1, 2, 3 };
	int i = 0;

	/* Some namespaces have a VXLAN each, but are reached from elsewhere as well. */
	if (map == &ln_networks)
		return key > LN_NETWORK_VXLAN && key <= LN_NETWORK_VXLAN + 3 ? &owners[key - LN_NETWORK_VXLAN] : NULL;
	if (key >= entries)
		return NULL;
	while (maps[i].map && maps[i].map != map)
		i++;
	check(i < 31);
	if (!maps[i].map) {
		maps[i].map = map;
		maps[i].memory = calloc(entries, value_size);
		check(maps[i].memory);
	}
	check(touched_count < sizeof(touched) / sizeof(*touched));
	touched[touched_count].element = maps[i].memory + (size_t)key * value_size;
	touched[touched_count].size = value_size;
	return touched[touched_count++].element;
}

static void forget(void)
{
	while (touched_count--)
		memset(touched[touched_count].element, 0, touched[touched_count].size);
	touched_count = 0;
}

void fuzz_lock(void)
{
	check(!locked++);
}

void fuzz_unlock(void)
{
	check(locked-- == 1);
}

__u64 bpf_ktime_get_ns(void)
{
	check(!locked);
	return now;
}

__u64 bpf_ktime_get_coarse_ns(void)
{
	check(!locked);
	return now;
}

__u32 bpf_get_prandom_u32(void)
{
	return 0;
}

__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data;
}

/* Leaves only the packet itself to touch. */
static void fence(struct xdp_md *ctx)
{
	ASAN_POISON_MEMORY_REGION(buffer, BUFFER);
	ASAN_UNPOISON_MEMORY_REGION((void *)(uintptr_t)ctx->data, ctx->data_end - ctx->data);
}

static uint32_t start(void)
{
	return (uint32_t)(uintptr_t)buffer;
}

long bpf_xdp_adjust_head(struct xdp_md *ctx, int delta)
{
	int64_t data = (int64_t)ctx->data + delta;

	if (data < start() || data + 14 > ctx->data_end)
		return -1;
	ctx->data = data;
	fence(ctx);
	return 0;
}

long bpf_xdp_adjust_tail(struct xdp_md *ctx, int delta)
{
	int64_t end = (int64_t)ctx->data_end + delta;

	if (end > start() + HEAD_ROOM + PACKET_ROOM || end < (int64_t)ctx->data + 14)
		return -1;
	ctx->data_end = end;
	fence(ctx);
	if (delta > 0)
		memset((void *)(uintptr_t)(end - delta), 0, delta);
	return 0;
}

long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 off, void *to, __u32 len)
{
	if ((uint64_t)off + len > bpf_xdp_get_buff_len(ctx))
		return -1;
	memcpy(to, (void *)(uintptr_t)(ctx->data + off), len);
	return 0;
}

long bpf_xdp_store_bytes(struct xdp_md *ctx, __u32 off, const void *from, __u32 len)
{
	if ((uint64_t)off + len > bpf_xdp_get_buff_len(ctx))
		return -1;
	memcpy((void *)(uintptr_t)(ctx->data + off), from, len);
	return 0;
}

long bpf_fib_lookup(void *ctx, struct bpf_fib_lookup *params, int size, __u32 flags)
{
	check(ctx && size == sizeof(*params) && !flags);
	called = 1;
	return BPF_FIB_LKUP_RET_SUCCESS;
}

long bpf_redirect(__u32 index, __u64 flags)
{
	check(!index && !flags);
	return XDP_REDIRECT;
}

/* There is no match stage here, and nothing else writes elements. */
long bpf_map_update_elem(const void *map, const void *key, const void *value, __u64 flags)
{
	check(!"called");
	return -1;
}

long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags)
{
	check(!"called");
	return -1;
}

/* The request of a call that another takes over, or that is answered. None is retained: no service here has a second try. */
long bpf_map_delete_elem(const void *map, const void *key)
{
	check(map == &ln_retained && *(const __u32 *)key < LN_MAX_CALLS + LN_MAX_RAW_CALLS);
	return -1;
}

/* The lambdas: their arguments must make sense, whatever came in. */
static uint8_t messages[2][IN_FLIGHT + 1][MESSAGE_MAX]; /* the last is a region */
static uint32_t replies[2][IN_FLIGHT + 1]; /* lengths */

static int run_assemble(struct xdp_md *ctx, struct ln_request *req)
{
	struct lambda_match *match = &req->match;
	uint8_t *message = messages[0][match->record];
	uint32_t n;

	check(match->record <= IN_FLIGHT);
	switch (req->step) {
	case LN_STEP_COPY:
		check(match->payload_len <= MESSAGE_MAX && match->offset <= MESSAGE_MAX - match->payload_len);
		check(match->offset + match->payload_len <= match->message_len);
		check(!bpf_xdp_load_bytes(ctx, req->payload_off, message + match->offset, match->payload_len));
		return LN_VERDICT_KEEP;
	case LN_STEP_RUN:
		check(match->message_len <= MESSAGE_MAX && !match->repeat);
		replies[0][match->record] = match->message_len;
		req->out_total = match->message_len;
		break;
	case LN_STEP_PULL:
		check(req->out_total == replies[0][match->record]);
		break;
	}
	if (match->window > req->out_total)
		return LN_VERDICT_FAULT;
	n = req->out_total - match->window;
	if (n > match->window_len)
		n = match->window_len;
	check(!n || !bpf_xdp_store_bytes(ctx, req->payload_off, message + match->window, n));
	req->out_len = n;
	return LN_VERDICT_FORWARD;
}

/* Also answers of a hostile lambda, which the root must not believe. */
static int run_packet(struct xdp_md *ctx, struct ln_request *req)
{
	struct lambda_match *match = &req->match;

	(void)ctx;
	req->out_off = (int32_t)(match->method >> 16) - 64;
	req->out_len = match->method & 0x3fff;
	req->out_total = match->method >> 8;
	req->service = match->method >> 30;
	return match->method >> 24 & 7;
}

/* How often lambdas ran, and for requests that came by a tunnel. */
static unsigned long ran, ran_in_tunnel;

static void report(void)
{
	printf("lambdas ran %lu times, %lu of them in tunnels\n", ran, ran_in_tunnel);
}

static int run(struct xdp_md *ctx, __u32 slot, int *verdict)
{
	__u32 zero = 0;
	const struct ln_scratch *scratch = bpf_map_lookup_elem(&ln_scratchpads, &zero);
	struct ln_request *req = bpf_map_lookup_elem(&ln_requests, &zero);
	struct lambda_match *match = &req->match;

	check(!locked);
	if (slot < 1 || slot > 3)
		return -1;
	if (match->event != LAMBDA_EVENT_COMPLETE && req->step != LN_STEP_RUN)
		check(req->payload_off + match->payload_len <= bpf_xdp_get_buff_len(ctx));
	check(match->window_len <= match->room || match->event == LAMBDA_EVENT_REPLY);
	ran++;
	ran_in_tunnel += scratch->flow.tunnel.vni != 0;
	switch (slot) {
	case 1:
		*verdict = run_packet(ctx, req);
		return 0;
	case 2:
		if (match->event == LAMBDA_EVENT_FRAGMENT && match->method & 1) {
			*verdict = LN_VERDICT_KEEP;
			return 0;
		}
		req->out_len = match->event == LAMBDA_EVENT_COMPLETE ? 0 : match->payload_len;
		req->out_total = match->message_len;
		*verdict = LN_VERDICT_FORWARD;
		return 0;
	}
	*verdict = run_assemble(ctx, req);
	return 0;
}

int fuzz_tail_call(struct xdp_md *ctx, const void *map, __u32 slot, int *verdict)
{
	static int (*const modules[LN_MODULE_MAX])(struct xdp_md *) = {
		[LN_MODULE_MESSAGES] = ln_messages_module, [LN_MODULE_ONCE] = ln_once_module,
		[LN_MODULE_CALLS] = ln_calls_module,	   [LN_MODULE_RDMA] = ln_rdma_module,
		[LN_MODULE_REGIONS] = ln_regions_module,
	};

	if (map == &ln_ikernels)
		return -1; /* there is none */
	if (map != &ln_modules)
		return run(ctx, slot, verdict);
	check(slot < LN_MODULE_MAX && modules[slot]);
	*verdict = modules[slot](ctx);
	return 0;
}

/* Two queue pairs, reliable and not, and a region of the lambda that assembles. */
static void connect(void)
{
	for (__u32 i = 0; i < 2; i++) {
		struct ln_qp *qp = bpf_map_lookup_elem(&ln_qps, &i);
		struct ln_region *region = bpf_map_lookup_elem(&ln_regions, &i);

		*qp = (struct ln_qp){
			.state = LN_QP_READY,
			.qpn = LN_MAX_QPS + i,
			.workload = 3,
			.peer_addr = { 1 },
			.service = i ? LN_ROCE_SERVICE_UC : LN_ROCE_SERVICE_RC,
			.mtu = 256,
			.receive = LN_MAX_REGIONS,
		};
		*region = (struct ln_region){
			.key = i ? 0 : LN_MAX_REGIONS,
			.slot = 3,
			.workload = 3,
			.revision = 1,
			.base = REGION,
			.length = MESSAGE_MAX,
			.record = IN_FLIGHT,
		};
	}
}

static void deploy(__u32 index, __u32 mode)
{
	__u32 workload = index;
	struct ln_slot *slot = bpf_map_lookup_elem(&ln_slots, &index);
	__u64 *word = bpf_map_lookup_elem(&ln_dispatch, &workload);

	*slot = (struct ln_slot){
		.workload = workload,
		.revision = 1,
		.mode = mode,
		.message_max = mode ? MESSAGE_MAX : LN_RPC_MAX_PAYLOAD,
		.message_timeout_ms = TIMEOUT_MS,
		.message_ways = LN_MESSAGE_WAYS,
		.service_count = 1,
		.namespace_id = index,
	};
	if (mode) {
		slot->bucket_base = index * 2;
		slot->bucket_count = IN_FLIGHT / LN_MESSAGE_WAYS;
	}
	*word = LN_DISPATCH(workload, LN_STATE_SLOT, index);
}

/* A namespace gets a few requests and little time for each pause of an input, and a share of a small budget. */
static void limit(__u32 namespace)
{
	struct ln_quota *quota = bpf_map_lookup_elem(&ln_quotas, &namespace);
	__u32 zero = 0;
	struct ln_budget *budget = bpf_map_lookup_elem(&ln_budgets, &zero);

	for (int of = 0; of < LN_RATES; of++)
		quota->rate[of] = (struct ln_rate){ .units = 8, .turn_ns = 1000000, .burst_ns = 2000000 };
	for (int of = 0; of < LN_RESOURCES; of++)
		quota->pace[of] = 2 * LN_PACE;
	budget->share = LN_BUDGET / 64;
	budget->byte_ns = 100 * LN_BYTE;
}

/* Both keys of a namespace. */
static void give_keys(__u32 namespace)
{
	struct ln_keys *keys = bpf_map_lookup_elem(&ln_namespace_keys, &namespace);

	for (int i = 0; i < 2; i++)
		keys->key[i] = (struct ln_key){ .word = { namespace, i }, .valid = 1 };
}

/* The NIC's address, of each family, is 0, as in the packets. */
static void own(void)
{
	__u32 zero = 0;
	struct ln_addresses *addresses = bpf_map_lookup_elem(&ln_own, &zero);

	addresses->count = 1;
}

/* Where the first calls look for a record, another call's lies, long overdue: they take it over. */
static void strand(void)
{
	for (__u64 number = 0; number < 2; number++) {
		__u32 index = ln_random(number) & (LN_MAX_CALLS - 1);
		struct ln_call *call = bpf_map_lookup_elem(&ln_calls, &index);

		call->state = (__u64)LN_MAX_CALLS << 16 | LN_CALL_WAITING;
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	check(buffer != MAP_FAILED && !atexit(report));
	return 0;
}

/* The beginning of each packet in an input; its values are put into a valid packet. */
struct order {
	uint8_t shape; /* bit 0: IPv6; 1, 2: VLAN tags, or 3: a VXLAN; 3: a pause; 4: cut; 5: patch; 6: a wrong tag; 7: a sequence number again */
	uint8_t type;
	uint8_t flags;
	uint8_t workload;
	uint8_t request;
	uint8_t index;
	uint8_t count;
	uint8_t length; /* in units of 8 bytes */
	uint16_t message_len;
	uint16_t room;
	uint32_t method;
	uint16_t patch_at;
	uint8_t patch[4];
};

#define RDMA 0x40 /* the type of orders for RoCEv2 */

static const uint8_t ethernet[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };

/* The headers of a VXLAN, whose number is a namespace's, around a frame of inner bytes. */
static uint32_t put_tunnel(uint8_t *p, const struct order *o, uint32_t inner)
{
	struct ln_wrap wrap = {
		.ip = { .version = 4, .ihl = 5, .protocol = IPPROTO_UDP, .saddr = 1 },
		.udp = { .source = bpf_htons(9), .dest = bpf_htons(LN_VXLAN_PORT) },
		.vxlan = { .flags = bpf_htonl(LN_VXLAN_FLAGS), .vni = bpf_htonl((__u32)(o->workload % 5) << 8) },
	};
	uint32_t len = offsetof(struct ln_wrap, eth);

	wrap.ip.tot_len = bpf_htons(len + inner);
	wrap.udp.len = bpf_htons(len - sizeof(wrap.ip) + inner);
	memcpy(p, ethernet, sizeof(ethernet));
	memcpy(p + sizeof(ethernet), (uint8_t[]){ 8, 0 }, 2);
	memcpy(p + sizeof(ethernet) + 2, &wrap, len);
	return sizeof(ethernet) + 2 + len;
}

static uint32_t put_headers(uint8_t *p, const struct order *o, uint32_t datagram)
{
	int ipv6 = o->shape & 1, tags = (o->shape >> 1) & 3;
	uint32_t n = 0;

	if (tags == 3) {
		n = put_tunnel(p, o, sizeof(struct ethhdr) + ln_l3_len(ipv6) + datagram);
		tags = 0;
	}
	memcpy(p + n, ethernet, sizeof(ethernet));
	n += sizeof(ethernet);
	for (int i = 0; i < tags; i++, n += 4)
		memcpy(p + n, (uint8_t[]){ 0x81, 0, 0, i }, 4);
	memcpy(p + n, ipv6 ? (uint8_t[]){ 0x86, 0xdd } : (uint8_t[]){ 8, 0 }, 2);
	n += 2;
	if (ipv6) {
		struct ipv6hdr ip = {
			.version = 6, .payload_len = bpf_htons(datagram), .nexthdr = IPPROTO_UDP, .saddr = { { { 1 } } }
		};

		memcpy(p + n, &ip, sizeof(ip));
		n += sizeof(ip);
	} else {
		struct iphdr ip = {
			.version = 4, .ihl = 5, .protocol = IPPROTO_UDP, .tot_len = bpf_htons(20 + datagram), .saddr = 1
		};

		memcpy(p + n, &ip, sizeof(ip));
		n += sizeof(ip);
	}
	return n;
}

/* A RoCEv2 packet. Without tables, every ICRC is of ones. */
static uint32_t build_rdma(uint8_t *p, const struct order *o)
{
	uint32_t length = o->room % 300, head = 12 + (o->count & 1 ? 16 : 0) + (o->count & 2 ? 4 : 0),
		 pad = -length & 3;
	uint32_t datagram = sizeof(struct udphdr) + head + length + pad + 4, n = put_headers(p, o, datagram);
	struct udphdr udp = { .source = bpf_htons(9), .dest = bpf_htons(LN_ROCE_PORT), .len = bpf_htons(datagram) };
	uint32_t word[8] = { bpf_htonl((uint32_t)o->flags << 24 | pad << 20 | LN_ROCE_P_KEY),
			     bpf_htonl(LN_MAX_QPS + o->workload % 3), bpf_htonl(1U << 31 | (o->index & 15)) };
	uint32_t reth[] = { 0, bpf_htonl(REGION + o->method % (MESSAGE_MAX + 16)), bpf_htonl(LN_MAX_REGIONS),
			    bpf_htonl(o->message_len) };

	memcpy(p + n, &udp, sizeof(udp));
	n += sizeof(udp);
	if (o->count & 1)
		memcpy(word + 3, reth, sizeof(reth));
	memcpy(p + n, word, head);
	n += head;
	memset(p + n, o->request, length + pad);
	n += length + pad;
	memset(p + n, 0xff, 4);
	return n + 4;
}

/* Tags a packet, whose payload is all of one byte, as its flags say. */
static void tag(struct ln_rpc *rpc, const struct order *o)
{
	__u32 zero = 0, length = o->length * 8, bytes = LN_TAGGED_HEADER;
	struct ln_tagged *tagged = bpf_map_lookup_elem(&ln_tagging, &zero);

	sequence += !(o->shape & 0x80);
	rpc->client = bpf_htonl(1);
	rpc->sequence = bpf_htonl(sequence);
	memcpy(tagged->words, rpc, bytes);
	if (rpc->flags & LN_FLAG_TAG_PAYLOAD && length <= LN_RPC_MAX_PAYLOAD) {
		memset((uint8_t *)tagged->words + bytes, o->request, length);
		bytes += length;
	}
	if (!ln_tag(o->workload % 5, !!(rpc->flags & LN_FLAG_ODD_KEY), bytes))
		rpc->tag = bpf_cpu_to_be64(tagged->tag);
}

/* Builds the packet that an order describes, and returns its length. */
static uint32_t build(uint8_t *p, const struct order *o)
{
	uint32_t room = o->room % 1500, datagram = sizeof(struct udphdr) + sizeof(struct ln_rpc) + room;
	uint32_t n = put_headers(p, o, datagram);
	struct udphdr udp = { .source = bpf_htons(9), .dest = bpf_htons(LN_RPC_PORT), .len = bpf_htons(datagram) };
	struct ln_rpc rpc = {
		.magic = bpf_htons(LN_RPC_MAGIC),
		.version = LN_RPC_VERSION,
		.type = o->type % 7,
		.flags = o->flags,
		.length = bpf_htons(o->length * 8),
		.workload = bpf_htonl(o->workload % 5),
		.request = o->request % 8,
		.index = bpf_htonl(o->index),
		.count = bpf_htonl(o->count),
		.message_len = bpf_htonl(o->message_len),
		.method = bpf_htonl(o->method),
		.revision = bpf_htonl(1),
	};

	if (rpc.flags & LN_FLAG_TAG && !(o->shape & 0x40))
		tag(&rpc, o);
	if (o->type & 0x80) /* the reply of a service */
		udp.dest = bpf_htons(LN_CALL_PORT + o->index % (LN_CALL_PORTS + LN_MAX_RAW_CALLS));
	memcpy(p + n, &udp, sizeof(udp));
	n += sizeof(udp);
	memcpy(p + n, &rpc, sizeof(rpc));
	n += sizeof(rpc);
	memset(p + n, o->request, room);
	n += room;
	if (o->shape & 0x20)
		memcpy(p + o->patch_at % (n - 4), o->patch, sizeof(o->patch));
	return o->shape & 0x10 ? 14 + o->patch_at % (n - 13) : n;
}

/* What holds for every packet. */
static void judge(const uint8_t *before, uint32_t len, const struct order *o, const struct xdp_md *ctx, int action)
{
	const uint8_t *after = (const uint8_t *)(uintptr_t)ctx->data;
	uint32_t out = ctx->data_end - ctx->data;

	check(!locked);
	if (o->type == RDMA && action == XDP_TX) { /* an acknowledgement is longer than an empty SEND */
		check(out <= len + 4 && !memcmp(after, before + 6, 6) && !memcmp(after + 6, before, 6));
		return;
	}
	if (action == XDP_PASS)
		check(out == len && !memcmp(before, after, len));
	else if (action != XDP_TX)
		check(action == XDP_DROP || action == XDP_REDIRECT);
	else if (called || o->type & 0x80)
		check(out <= 14 + 8 + LN_WRAP + 40 + 8 + 64 + LN_RPC_MAX_PAYLOAD);
	else
		check(out <= len && !memcmp(after, before + 6, 6) && !memcmp(after + 6, before, 6));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t before[PACKET_ROOM];
	struct order o;

	forget();
	now = 100000000000ULL;
	for (__u32 i = 1; i <= 3; i++)
		deploy(i, i - 1);
	limit(1);
	for (__u32 i = 1; i <= 3; i++)
		give_keys(i);
	sequence = 0;
	own();
	connect();
	strand();
	for (; size >= sizeof(o); data += sizeof(o), size -= sizeof(o)) {
		struct xdp_md ctx = { .data = start() + HEAD_ROOM };
		uint32_t len;

		memcpy(&o, data, sizeof(o));
		len = o.type == RDMA ? build_rdma(before, &o) : build(before, &o);
		if (o.shape & 8)
			now += (uint64_t)o.room * 1000000;
		ctx.data_end = ctx.data + len;
		fence(&ctx);
		memcpy((void *)(uintptr_t)ctx.data, before, len);
		called = 0;
		judge(before, len, &o, &ctx, ln_root(&ctx));
	}
	return 0;
}
