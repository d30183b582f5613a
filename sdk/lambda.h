/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The header that a lambda includes. A lambda is one C function with the signature of the λ-NIC paper's Listing 1:
 *
 *	int NAME(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
 *
 * The same source builds for the NIC (BPF) and for the host (target process), and gives the same bytes on both.
 *
 * A lambda works on its request in place: it writes its reply to the request's payload, as the request's packet
 * becomes the reply's. docs/lambdas.md is the guide.
 */
#ifndef LAMBDA_H
#define LAMBDA_H

#ifndef __bpf__
#define LN_LAYOUT_NO_LOCKS
#endif
#include "lambda_hints.h"
#include "layout.h"
#include "rpc_wire.h"

/* The compiler's own types, the same as in <stdint.h>, so that a source may include that, too. */
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;

#ifndef NULL
#define NULL ((void *)0)
#endif

/* What a lambda returns. */
enum {
	RETURN_DROP = LN_VERDICT_DROP, /* no answer */
	RETURN_FORWARD = LN_VERDICT_FORWARD, /* the reply that lambda_reply() described, to the client */
	RETURN_CALL = LN_VERDICT_CALL, /* the bytes that lambda_call() described, to an external service */
	RETURN_KEEP = LN_VERDICT_KEEP, /* mode stream: this packet was taken in, no answer yet */
	RETURN_FAULT = LN_VERDICT_FAULT, /* a guard failed: the client gets the error "lambda fault" */
};

/* Why a lambda runs: match_data->event. */
enum {
	LAMBDA_REQUEST = LAMBDA_EVENT_REQUEST, /* a request of one packet, or (mode assemble) a whole message */
	LAMBDA_FRAGMENT = LAMBDA_EVENT_FRAGMENT, /* mode stream: one packet of a message, at match_data->offset */
	LAMBDA_COMPLETE =
		LAMBDA_EVENT_COMPLETE, /* mode stream: all packets were taken in with RETURN_KEEP; answer the message now */
	LAMBDA_REPLY = LAMBDA_EVENT_REPLY, /* an external service answered; its bytes are the payload */
};

typedef struct lambda_headers EXTRACTED_HEADERS_T;
typedef struct lambda_match MATCH_DATA_T;

/*
 * What happens to a global variable when a new revision takes over. A plain one starts anew. A kept one goes on; it must have the
 * same name and type in both revisions, else the deploy is refused. A migrated one is taken over as it is if its type is the same,
 * or filled by LAMBDA_MIGRATE() if the type differs. Only one variable may be migrated: use a struct for more. Zeros in sections that
 * begin with .bss take no room in an object file. Loaders find these sections under other names: for the NIC the compiler renames
 * .bss..NAME to .data.NAME, for the host lambda.ld to lambda_NAME.
 */
#define LAMBDA_KEPT __attribute__((section(".bss..keep")))
#define LAMBDA_MIGRATED __attribute__((section(".bss..migrate")))

/*
 * LAMBDA_MIGRATE(struct counters_v1, old) { ... } defines the function that fills the migrated variable, and anything that depends
 * on it, from the running revision's. The type must be spelled as in that revision; its tag is free. The function runs once, when
 * the revision is deployed. It reads the running revision's own memory, or a copy: do not change that.
 */
#define LAMBDA_MIGRATE(type, name) \
	type lambda_migrate_old __attribute__((section(".bss..migrate_old"))); \
	static __always_inline void lambda_migrate_from(const type *name); \
	LAMBDA_MIGRATE_ENTRY \
	{ \
		const type *old = &lambda_migrate_old; \
		lambda_opaque(old); /* others write it */ \
		lambda_migrate_from(old); \
		return 0; \
	} \
	static __always_inline void lambda_migrate_from(const type *name)

/*
 * LAMBDA_ATOMIC marks a global variable that requests on several CPUs change: each read, change and write-back is one atomic operation,
 * or the compiler refuses it. Without the mark, x++, x += e and the like are atomic where they can be.
 */
#define LAMBDA_ATOMIC __attribute__((annotate("lambda.atomic")))

/* Spare bytes that an array needs at its end for lambda_reply_from(). */
#define LAMBDA_WINDOW LN_RPC_MAX_PAYLOAD

/* SERVICE(memcached) is the service of that name in the spec. */
#define SERVICE(name) SERVICE_##name

/* Hides a value's history from the optimiser, so that the verifier sees the bound that is checked. */
#define lambda_opaque(var) asm volatile("" : "+r"(var))

/*
 * lambda_forget(headers, value) returns the value. On the NIC the verifier forgets what it knew about it, so that it verifies the
 * paths that led to different values as one. lambda_move(headers, to, from, len) moves bytes within the payload, which may
 * overlap; 0, or -1 where they do not fit.
 */
#define LAMBDA_MOVE_MAX 256

/*
 * lambda_cpu() is a number below LAMBDA_CPUS. If there are more CPUs, several share a number (target process: so do threads on a CPU),
 * so change what it indexes by atomic operations. These cost less while no other CPU uses the same memory.
 */
#define LAMBDA_CPUS 16

/*
 * Sets how many of a reply's len bytes this packet takes, from match->window on. -1 if the window begins beyond them, or if a reply after
 * a service's answer does not fit one packet: to get the next packet, the client would make the lambda ask the service again.
 */
static __always_inline int lambda_window(const struct lambda_match *match, uint32_t len, uint32_t *n)
{
	uint32_t room = match->window_len ? match->window_len : match->room;

	if (match->window > len || (match->event == LAMBDA_REPLY && len > room))
		return -1;
	*n = len - match->window;
	if (*n > room)
		*n = room;
	return 0;
}

#ifdef LAMBDA_NFP
#include "lambda_nfp.h"
#elif defined(__bpf__)
#include "lambda_bpf.h"
#else
#include "lambda_host.h"
#endif

/*
 * LAMBDA_COUNTERS(name, n) defines n counters of 64 bits, which begin at zero. lambda_count(name, i, by) adds to one of them, and does
 * nothing if i is not below n. They are kept when a new revision takes over. On a Netronome card, counters are the only memory
 * that a lambda writes; the host reads them from the map of that name.
 */
#ifndef LAMBDA_NFP
#define LAMBDA_COUNTERS(name, n) LAMBDA_KEPT uint64_t name[n]
#define lambda_count(name, i, by) \
	({ \
		uint32_t _i = (i); \
		if (_i < sizeof(name) / sizeof(name[0])) \
			__sync_fetch_and_add(&name[_i], by); \
	})
#endif

/*
 * payload() returns a pointer to len bytes at offset off of the payload, or NULL where the packet (mode assemble: the message
 * buffer) does not hold them. len must be a constant. off may be negative down to -LN_PREFIX, -48, except in mode assemble: that
 * room before the payload is free, for a prefix. There may be room behind the payload as well; match_data->payload_len is the
 * length of the request's bytes.
 */
static __always_inline uint8_t *payload(EXTRACTED_HEADERS_T *headers, int32_t off, uint32_t len);

/*
 * lambda_put() makes room for len more bytes behind the first off bytes of the payload and returns a pointer to them, or
 * NULL where the packet cannot hold them. len must be a constant. Pointers from payload() are invalid afterwards. Use it for
 * external calls and for replies after a service's answer: without a call, a reply has the room that its request brought.
 */
static __always_inline uint8_t *lambda_put(EXTRACTED_HEADERS_T *headers, uint32_t off, uint32_t len);

/*
 * For ordinary C, which works on memory of its own: lambda_read() copies the first bytes of the request to to, at most max,
 * and returns how many. lambda_write() copies len bytes to the reply and answers with them; a longer reply goes out window by
 * window, as with lambda_reply_from(). In mode assemble, lambda_message() points to the whole message in place, of
 * match_data->payload_len bytes.
 */
static __always_inline uint32_t lambda_read(EXTRACTED_HEADERS_T *headers, void *to, uint32_t max);
static __always_inline int lambda_write(EXTRACTED_HEADERS_T *headers, const void *from, uint32_t len);
#ifdef LAMBDA_ASSEMBLE
static __always_inline uint8_t *lambda_message(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data);
#endif

/* Answers with len bytes of the payload from off on. Bytes outside of payload() are a fault; if no packet holds them, error 6. */
static __always_inline int lambda_reply(EXTRACTED_HEADERS_T *headers, int32_t off, uint32_t len)
{
	headers->req->out_off = off;
	headers->req->out_len = len;
	headers->req->out_total = len;
	return RETURN_FORWARD;
}

/* Mode stream: answers one packet with len bytes of a reply that is total bytes long. */
static __always_inline int lambda_reply_part(EXTRACTED_HEADERS_T *headers, int32_t off, uint32_t len, uint32_t total)
{
	headers->req->out_off = off;
	headers->req->out_len = len;
	headers->req->out_total = total;
	return RETURN_FORWARD;
}

/* The status that the gateway turns into an HTTP status of 400 to 555: LN_STATUS_HTTP(429). */
#define LN_STATUS_HTTP(code) lambda_http_status(code)
static __always_inline uint32_t lambda_http_status(uint32_t code)
	__attribute__((diagnose_if(code < 400 || code > 555, "LN_STATUS_HTTP() takes 400 to 555", "error")))
{
	return code >= 400 && code <= 555 ? LN_STATUS_HTTP400 + code - 400 : LN_STATUS_FAILED;
}

/* Refuses a constant that does not fit the 8 bits of a status: usually an HTTP status. */
#define NO_STATUS(status) \
	diagnose_if(status > 255, "a status is 0 to 255: LN_STATUS_HTTP(429) is the one that HTTP calls 429", "error")

/* Sets the reply's status, LN_STATUS_OK if never called. */
static __always_inline void lambda_status(EXTRACTED_HEADERS_T *headers, uint32_t status)
	__attribute__((NO_STATUS(status)))
{
	headers->req->out_status = status > 255 ? LN_STATUS_FAILED : status;
}

/* Answers with a status and no bytes. */
static __always_inline int lambda_fail(EXTRACTED_HEADERS_T *headers, uint32_t status) __attribute__((NO_STATUS(status)))
{
	lambda_status(headers, status);
	return lambda_reply(headers, 0, 0);
}

#undef NO_STATUS

/*
 * Sends len bytes of the payload from off on to an external service. When the service answers, the lambda runs again with event
 * LAMBDA_REPLY and match_data->cookie as it left it. Time-outs are reported to the client without running the lambda. If the
 * service has several servers, the key chooses one: the same key goes to the same server as long as the service has that server.
 */
static __always_inline int lambda_call_key(EXTRACTED_HEADERS_T *headers, uint32_t service, int32_t off, uint32_t len,
					   uint64_t key)
{
	headers->req->service = service;
	headers->req->out_off = off;
	headers->req->out_len = len;
	headers->req->key = key;
	return RETURN_CALL;
}

/* The same, with the request ID as key: calls spread over all servers, and a repeated request goes to the same server. */
static __always_inline int lambda_call(EXTRACTED_HEADERS_T *headers, uint32_t service, int32_t off, uint32_t len)
{
	return lambda_call_key(headers, service, off, len, headers->req->match.request);
}

#if !defined(LAMBDA_ASSEMBLE) && !defined(LAMBDA_NFP)
/* Sends len bytes, at least one, of the lambda's own memory to an external service: lambda_call_key() for ordinary C. */
static __always_inline int lambda_call_with(EXTRACTED_HEADERS_T *headers, uint32_t service, const void *from,
					    uint32_t len, uint64_t key)
{
	if (lambda_place(headers, from, len))
		return RETURN_FAULT;
	return lambda_call_key(headers, service, 0, len, key);
}
#endif

/*
 * lambda_reply_from(headers, match_data, array, at, len) answers with len bytes of array from at on. If the reply has no room
 * for them, it sends the window that the client asked for. So a text of any length goes out as a reply of many packets.
 * array must have LAMBDA_WINDOW spare bytes at its end.
 */
#define lambda_reply_from(headers, match_data, array, at, len) \
	lambda_copy_out(headers, match_data, (const uint8_t *)(array), sizeof(array), at, len)

/*
 * lambda_store_to(headers, array, at, len) copies the first len bytes of the payload into array from at on; 0, or -1 where
 * they do not fit. array must have LAMBDA_WINDOW spare bytes at its end.
 */
#define lambda_store_to(headers, array, at, len) lambda_copy_in(headers, (uint8_t *)(array), sizeof(array), at, len)

#endif
