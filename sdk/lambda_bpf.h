/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The SDK's half for the NIC: a lambda is an XDP program of its own, which the root program calls by a tail call. */
#ifndef LAMBDA_BPF_H
#define LAMBDA_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* One per NIC and CPU, shared with the root program (layout.h). */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_request);
} ln_requests SEC(".maps");

/* Working memory of this lambda alone, for lambda_forget() and lambda_move(). */
struct lambda_workspace {
	uint32_t value;
	uint8_t bytes[LAMBDA_MOVE_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lambda_workspace);
} lambda_workspaces SEC(".maps");

static __always_inline struct lambda_workspace *lambda_workspace(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&lambda_workspaces, &zero);
}

struct lambda_headers {
	struct xdp_md *ctx;
	struct ln_request *req;
	uint32_t base; /* of the payload in the packet */
};

/* Run by BPF_PROG_TEST_RUN, with the running revision's migrated variable in place of lambda_migrate_old. */
#define LAMBDA_MIGRATE_ENTRY SEC("xdp.frags") int lambda_migrate(struct xdp_md *ctx)

/* Bytes of the packet, or NULL where it does not hold them. */
static __always_inline uint8_t *lambda_packet(struct xdp_md *ctx, uint32_t at, uint32_t len)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	lambda_opaque(at);
	if (at > 0x3fff) /* the verifier follows packet offsets up to 0xffff in total */
		return NULL;
	data += at;
	return data + len > end ? NULL : data;
}

#ifdef LAMBDA_ASSEMBLE
/* The messages in assembly, and after the run their replies. */
static uint8_t lambda_messages[LAMBDA_IN_FLIGHT][LAMBDA_MESSAGE_MAX + LAMBDA_WINDOW] SEC(".bss..messages");
static uint32_t lambda_reply_at[LAMBDA_IN_FLIGHT] SEC(".bss..messages");

static __always_inline uint8_t *payload(EXTRACTED_HEADERS_T *headers, int32_t off, uint32_t len)
{
	uint32_t record = headers->req->match.record;
	uint32_t at = off;

	lambda_opaque(record);
	lambda_opaque(at);
	if (record >= LAMBDA_IN_FLIGHT || at > LAMBDA_MESSAGE_MAX || len > LAMBDA_WINDOW)
		return NULL;
	return &lambda_messages[record][at];
}
#else
static __always_inline uint8_t *payload(EXTRACTED_HEADERS_T *headers, int32_t off, uint32_t len)
{
	return lambda_packet(headers->ctx, headers->base + off, len);
}
#endif

/* Nanoseconds since boot, to some milliseconds. */
static __always_inline uint64_t lambda_now(void)
{
	return bpf_ktime_get_coarse_ns();
}

static __always_inline uint32_t lambda_cpu(void)
{
	return bpf_get_smp_processor_id() % LAMBDA_CPUS;
}

/* The verifier does not know a value that is loaded from a map, even if it was stored there just before. */
static __always_inline uint32_t lambda_forget(EXTRACTED_HEADERS_T *headers, uint32_t value)
{
	struct lambda_workspace *work = lambda_workspace();

	(void)headers;
	if (!work)
		return 0;
	*(volatile uint32_t *)&work->value = value;
	return *(volatile uint32_t *)&work->value;
}

static __always_inline int lambda_move(EXTRACTED_HEADERS_T *headers, int32_t to, int32_t from, uint32_t len)
{
	struct lambda_workspace *work = lambda_workspace();

	lambda_opaque(len);
	if (!work || len > LAMBDA_MOVE_MAX)
		return -1;
	if (!len)
		return 0;
	if (bpf_xdp_load_bytes(headers->ctx, headers->base + from, work->bytes, len) ||
	    bpf_xdp_store_bytes(headers->ctx, headers->base + to, work->bytes, len))
		return -1;
	return 0;
}

#define LAMBDA_SHIFT_MAX LN_SPARE

/*
 * Makes room at the packet's end by moving payload and prefix forward, over the request's headers: replies and calls get
 * new ones. For packets of local sockets, whose memory may end where they do.
 */
static __attribute__((noinline, unused)) int lambda_shift(struct xdp_md *ctx, uint32_t base, uint32_t grow)
{
	struct lambda_workspace *work = lambda_workspace();
	uint32_t from = base - LN_PREFIX, end = bpf_xdp_get_buff_len(ctx), n = end - from;

	if (!work || !grow || grow > LAMBDA_SHIFT_MAX)
		return -1;
	for (int i = 0; i < 7 && n > LAMBDA_MOVE_MAX; i++) {
		if (bpf_xdp_load_bytes(ctx, from, work->bytes, LAMBDA_MOVE_MAX) ||
		    bpf_xdp_store_bytes(ctx, from - grow, work->bytes, LAMBDA_MOVE_MAX))
			return -1;
		from += LAMBDA_MOVE_MAX;
		n -= LAMBDA_MOVE_MAX;
	}
	n--; /* then the verifier learns both bounds from one comparison */
	lambda_opaque(n);
	if (n < LAMBDA_MOVE_MAX) {
		if (bpf_xdp_load_bytes(ctx, from, work->bytes, n + 1) ||
		    bpf_xdp_store_bytes(ctx, from - grow, work->bytes, n + 1))
			return -1;
	} else if (n + 1) {
		return -1;
	}
	__builtin_memset(work->bytes, 0, LAMBDA_SHIFT_MAX);
	grow--;
	lambda_opaque(grow);
	if (grow >= LAMBDA_SHIFT_MAX)
		return -1;
	return bpf_xdp_store_bytes(ctx, end - grow - 1, work->bytes, grow + 1) ? -1 : 0;
}

static __always_inline uint8_t *lambda_put(EXTRACTED_HEADERS_T *headers, uint32_t off, uint32_t len)
{
	uint8_t *p = payload(headers, off, len);
	int grow;

	if (p)
		return p;
	grow = (int)(headers->base + off + len) - (int)bpf_xdp_get_buff_len(headers->ctx);
	if (grow <= 0)
		return NULL;
	if (bpf_xdp_adjust_tail(headers->ctx, grow)) {
		if (lambda_shift(headers->ctx, headers->base, grow))
			return NULL;
		headers->base -= grow;
		headers->req->payload_off -= grow;
	}
	return payload(headers, off, len);
}

static __always_inline int lambda_copy_in(EXTRACTED_HEADERS_T *headers, uint8_t *array, uint32_t size, uint32_t at,
					  uint32_t len)
{
	lambda_opaque(at);
	lambda_opaque(len);
	if (size < LAMBDA_WINDOW || at > size - LAMBDA_WINDOW || len > LAMBDA_WINDOW)
		return -1;
	return len && bpf_xdp_load_bytes(headers->ctx, headers->base, array + at, len) ? -1 : 0;
}

/*
 * The kernel's address of len bytes of the lambda's own memory at p, for helpers; a fault if they are not all the lambda's. The
 * verifier sees max bytes there: a constant of at most 2,048. The compiler's passes make the function (compiler/passes/memory.cpp).
 */
void *__lambda_resolve(const void *p, uint32_t len, uint32_t max);

#ifdef LAMBDA_ASSEMBLE
static __always_inline uint8_t *lambda_message(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	(void)headers;
	return lambda_messages[match_data->record & (LAMBDA_IN_FLIGHT - 1)];
}

static __always_inline uint32_t lambda_read(EXTRACTED_HEADERS_T *headers, void *to, uint32_t max)
{
	uint32_t n = headers->req->match.payload_len;

	if (n > max)
		n = max;
	__builtin_memcpy(to, lambda_message(headers, &headers->req->match), n);
	return n;
}

static __always_inline int lambda_write(EXTRACTED_HEADERS_T *headers, const void *from, uint32_t len)
{
	if (len > LAMBDA_MESSAGE_MAX)
		return RETURN_FAULT;
	__builtin_memcpy(lambda_message(headers, &headers->req->match), from, len);
	headers->req->out_off = 0;
	headers->req->out_len = len;
	headers->req->out_total = len;
	return RETURN_FORWARD;
}

/* In mode assemble, the reply goes out window by window after the run. */
static __always_inline int lambda_copy_out(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data, const uint8_t *array,
					   uint32_t size, uint32_t at, uint32_t len)
{
	(void)match_data;
	return at > size || len > size - at ? RETURN_FAULT : lambda_write(headers, array + at, len);
}
#else
/*
 * Copies up to 512 bytes without the cost of a helper, 32 at a time. If the packet has room it copies a little more than n, which the
 * reply's length then cuts off. 0, or -1 where it did not copy all. All arguments are values, so that lambdas can share it.
 */
static __always_inline int lambda_copy_short(struct xdp_md *ctx, uint32_t base, const uint8_t *from, uint32_t n)
{
	for (uint32_t i = 0; i < 512; i += 32) {
		uint8_t *to;

		if (i >= n)
			return 0;
		to = lambda_packet(ctx, base + i, 32);
		if (!to)
			return -1;
		for (int k = 0; k < 32; k += 8)
			*(uint64_t *)(to + k) = *(const uint64_t *)(from + i + k);
	}
	return n > 512 ? -1 : 0;
}

/* Makes room for a reply of n bytes: clients pad what they send (docs/protocol.md), services do not pad what they answer. */
static __always_inline int lambda_reply_room(EXTRACTED_HEADERS_T *headers, uint32_t n)
{
#ifdef LAMBDA_CALLS
	if (headers->req->match.event == LAMBDA_REPLY && n && !lambda_put(headers, n - 1, 1))
		return -1;
#else
	(void)headers;
	(void)n;
#endif
	return 0;
}

static __always_inline int lambda_copy_out(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data, const uint8_t *array,
					   uint32_t size, uint32_t at, uint32_t len)
{
	uint32_t n;

	if (lambda_window(match_data, len, &n) || size < LAMBDA_WINDOW || lambda_reply_room(headers, n))
		return RETURN_FAULT;
	at += match_data->window;
	lambda_opaque(at);
	lambda_opaque(n);
	if (at > size - LAMBDA_WINDOW || n > LAMBDA_WINDOW)
		return RETURN_FAULT;
	if (lambda_copy_short(headers->ctx, headers->base, array + at, n) &&
	    bpf_xdp_store_bytes(headers->ctx, headers->base, (void *)(array + at), n))
		return RETURN_FAULT;
	headers->req->out_off = 0;
	headers->req->out_len = n;
	headers->req->out_total = len;
	return RETURN_FORWARD;
}

static __always_inline uint32_t lambda_read(EXTRACTED_HEADERS_T *headers, void *to, uint32_t max)
{
	uint32_t last, n = headers->req->match.payload_len;
	void *bytes;

	if (n > max)
		n = max;
	bytes = __lambda_resolve(to, n, LAMBDA_WINDOW);
	last = n - 1; /* then the verifier learns both bounds from one comparison, also in a loop */
	lambda_opaque(last);
	if (last >= LAMBDA_WINDOW || bpf_xdp_load_bytes(headers->ctx, headers->base, bytes, last + 1))
		return 0;
	return n;
}

/* Replaces the payload by len bytes of the lambda's memory; 0, or -1 where the packet has no room for them. */
static __always_inline int lambda_place(EXTRACTED_HEADERS_T *headers, const void *from, uint32_t len)
{
	uint32_t last = len - 1; /* as in lambda_read() */
	void *bytes;

	if (last >= LAMBDA_WINDOW || !lambda_put(headers, last, 1))
		return -1;
	bytes = __lambda_resolve(from, len, LAMBDA_WINDOW);
	lambda_opaque(last);
	if (last >= LAMBDA_WINDOW || bpf_xdp_store_bytes(headers->ctx, headers->base, bytes, last + 1))
		return -1;
	return 0;
}

static __always_inline int lambda_write(EXTRACTED_HEADERS_T *headers, const void *from, uint32_t len)
{
	struct lambda_match *match = &headers->req->match;
	uint32_t n;
	void *bytes;

	if (lambda_window(match, len, &n) || lambda_reply_room(headers, n))
		return RETURN_FAULT;
	bytes = __lambda_resolve((const uint8_t *)from + match->window, n, LAMBDA_WINDOW);
	lambda_opaque(n);
	if (n > LAMBDA_WINDOW || (n && bpf_xdp_store_bytes(headers->ctx, headers->base, bytes, n)))
		return RETURN_FAULT;
	headers->req->out_off = 0;
	headers->req->out_len = n;
	headers->req->out_total = len;
	return RETURN_FORWARD;
}
#endif

#endif
