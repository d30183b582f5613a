/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SDK's half for Netronome's cards: the lambda and what the NIC program does for it are one program. It uses only what the nfp
 * driver translates (drivers/net/ethernet/netronome/nfp/bpf/verifier.c in Linux): the packet by its address, maps by look-ups,
 * no tail calls. Functions that the card lacks are marked unavailable, so that the compiler names the author's line.
 */
#ifndef LAMBDA_NFP_H
#define LAMBDA_NFP_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Where the payload begins: the card takes requests in plain UDP over IPv4; others go to the host. */
#define LAMBDA_NFP_BASE (ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr) + sizeof(struct ln_rpc))

/* lambda_read() and lambda_write() copy at most so many bytes: the card has no memory to index, so copies are unrolled. */
#define LAMBDA_NFP_COPY 128

#define LAMBDA_NFP_UNAVAILABLE(remedy) __attribute__((unavailable("the card has nothing for it: " remedy)))

struct lambda_headers {
	struct xdp_md *ctx;
	struct ln_request *req;
};

/* Each counter is an entry of its own, of one word: the card's cores add to words only at constant places. */
#define LAMBDA_COUNTERS(name, n) \
	struct { \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, n); \
		__type(key, __u32); \
		__type(value, __u64); \
	} name SEC(".maps")

#define lambda_count(name, i, by) \
	({ \
		__u32 _i = (i); \
		__u64 *_word = bpf_map_lookup_elem(&name, &_i); \
		if (_word) \
			__sync_fetch_and_add(_word, by); \
	})

static __always_inline uint8_t *payload(EXTRACTED_HEADERS_T *headers, int32_t off, uint32_t len)
{
	void *data = (void *)(long)headers->ctx->data;
	void *end = (void *)(long)headers->ctx->data_end;
	uint32_t at = LAMBDA_NFP_BASE + off;

	if (at > 0x3fff) /* as on the NIC (lambda_bpf.h) */
		return NULL;
	data += at;
	return data + len > end ? NULL : data;
}

static __always_inline uint8_t *lambda_put(EXTRACTED_HEADERS_T *headers, uint32_t off, uint32_t len)
{
	return payload(headers, off, len);
}

static __always_inline uint32_t lambda_cpu(void)
{
	return 0;
}

static __always_inline uint32_t lambda_forget(EXTRACTED_HEADERS_T *headers, uint32_t value)
{
	(void)headers;
	lambda_opaque(value);
	return value;
}

static __always_inline uint32_t lambda_read(EXTRACTED_HEADERS_T *headers, void *to, uint32_t max)
{
	uint32_t n = headers->req->match.payload_len;

	if (n > max)
		n = max;
	if (n > LAMBDA_NFP_COPY)
		n = LAMBDA_NFP_COPY;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < LAMBDA_NFP_COPY; i++) {
		const uint8_t *p = i < n ? payload(headers, i, 1) : NULL;

		if (p)
			((uint8_t *)to)[i] = *p;
	}
	return n;
}

/* A reply without room is described, not written: the client is told how much room it needs. */
static __always_inline int lambda_write(EXTRACTED_HEADERS_T *headers, const void *from, uint32_t len)
{
	struct ln_request *req = headers->req;

	req->out_off = 0;
	req->out_len = len;
	req->out_total = len;
	if (len > req->match.room)
		return RETURN_FORWARD;
	if (len > LAMBDA_NFP_COPY)
		return RETURN_FAULT;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < LAMBDA_NFP_COPY; i++) {
		uint8_t *p = i < len && i < __builtin_object_size(from, 0) ? payload(headers, i, 1) : NULL;

		if (p)
			*p = ((const uint8_t *)from)[i];
	}
	return RETURN_FORWARD;
}

uint64_t lambda_now(void) LAMBDA_NFP_UNAVAILABLE("let the host keep the time");
int lambda_move(EXTRACTED_HEADERS_T *headers, int32_t to, int32_t from, uint32_t len)
	LAMBDA_NFP_UNAVAILABLE("move bytes through payload(), a few at a time, or reply from where they stand");
int lambda_copy_out(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data, const uint8_t *array, uint32_t size,
		    uint32_t at, uint32_t len)
	LAMBDA_NFP_UNAVAILABLE("write each text by lambda_put_text(), and answer with lambda_reply()");
int lambda_copy_in(EXTRACTED_HEADERS_T *headers, uint8_t *array, uint32_t size, uint32_t at, uint32_t len)
	LAMBDA_NFP_UNAVAILABLE("keep what is stored on the host");

/* The function has the macro's name, so that the compiler's message names it; the parentheses avoid the macro. */
int(LAMBDA_MIGRATE)(void) LAMBDA_NFP_UNAVAILABLE("keep what lasts on the host");
#define LAMBDA_MIGRATE_ENTRY \
	static inline int lambda_migrates(void) \
	{ \
		return (LAMBDA_MIGRATE)(); \
	} \
	static inline int lambda_migrate(struct xdp_md *ctx)

#endif
